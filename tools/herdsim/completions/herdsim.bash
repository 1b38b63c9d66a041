# Completion of herdsim for bash. The program itself says what fits: `herdsim completion words WORD...`.
#   herdsim completion bash > ~/.local/share/bash-completion/completions/herdsim
_herdsim() {
  # Words as they were typed: COMP_WORDS is cut at "=" and ":", which are part of --set model.layers=62.
  local -a words
  local line=${COMP_LINE:0:COMP_POINT} found cut
  read -ra words <<<"$line"
  [[ $line == *[[:space:]] ]] && words+=("")
  local current=${words[-1]}
  # Readline replaces what follows the last "=" or ":" alone.
  cut=${current%"${current##*[=:]}"}
  COMPREPLY=()
  while IFS=$'\t' read -r found _; do
    COMPREPLY+=("${found#"$cut"}")
  done < <("${words[0]/#\~/$HOME}" completion words -- "${words[@]:1}" 2>/dev/null)
  # More follows a field's name.
  [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *[.=] ]] && compopt -o nospace 2>/dev/null
  return 0
}
# Files where the program knows no word that fits.
complete -o default -o nosort -F _herdsim herdsim
