# herdsim_embed_text(OUTPUT file.cc SYMBOL name FILES path...)
#   Generates a C++ source that holds text files, so that the program needs no installed files. FILES are relative to
#   the repository root and stay the names by which the text is found. Whoever reads them declares, in namespace herdsim,
#     std::span<const std::pair<std::string_view, std::string_view>> <name>();   // (file, text) in the order of FILES
#   Edited files are embedded again by the next build.
#
# The same file is the script that the build runs: cmake -DOUTPUT=... -DSYMBOL=... -DROOT=... "-DFILES=a|b" -P <this>.
if(CMAKE_SCRIPT_MODE_FILE)
  set(text "// Generated from the files named below; edit those.\n")
  string(APPEND text "#include <span>\n#include <string_view>\n#include <utility>\n\nnamespace herdsim {\n")
  string(APPEND text "using EmbeddedFile = std::pair<std::string_view, std::string_view>;\n")
  string(APPEND text "std::span<const EmbeddedFile> ${SYMBOL}();\n")
  string(APPEND text "std::span<const EmbeddedFile> ${SYMBOL}() {\n  static constexpr EmbeddedFile kFiles[] = {\n")
  string(REPLACE "|" ";" files "${FILES}")
  foreach(file IN LISTS files)
    file(READ "${ROOT}/${file}" content)
    string(APPEND text "      {\"${file}\", R\"~embedded~(${content})~embedded~\"},\n")
  endforeach()
  string(APPEND text "  };\n  return kFiles;\n}\n}  // namespace herdsim\n")
  file(WRITE "${OUTPUT}" "${text}")
  return()
endif()

include_guard(GLOBAL)

function(herdsim_embed_text)
  cmake_parse_arguments(ARG "" "OUTPUT;SYMBOL" "FILES" ${ARGN})
  list(TRANSFORM ARG_FILES PREPEND "${PROJECT_SOURCE_DIR}/" OUTPUT_VARIABLE paths)
  list(JOIN ARG_FILES "|" joined)
  add_custom_command(
    OUTPUT "${ARG_OUTPUT}"
    COMMAND "${CMAKE_COMMAND}" "-DOUTPUT=${ARG_OUTPUT}" "-DSYMBOL=${ARG_SYMBOL}" "-DROOT=${PROJECT_SOURCE_DIR}"
            "-DFILES=${joined}" -P "${CMAKE_CURRENT_FUNCTION_LIST_FILE}"
    DEPENDS ${paths} "${CMAKE_CURRENT_FUNCTION_LIST_FILE}"
    VERBATIM)
endfunction()
