# Completion of herdsim for fish. The program itself says what fits: `herdsim completion words WORD...`.
#   herdsim completion fish > ~/.config/fish/completions/herdsim.fish
function __herdsim_words
    set -l words (commandline -opc)
    set -l found (command $words[1] completion words -- $words[2..-1] (commandline -ct) 2>/dev/null)
    if test (count $found) -gt 0
        printf '%s\n' $found
    else
        __fish_complete_path (commandline -ct)
    end
end
complete -c herdsim -k -f -a '(__herdsim_words)'
