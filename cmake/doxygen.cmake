# cmake -DSOURCE=<repository> -DBINARY=<folder> -P doxygen.cmake
#   Writes <folder>/html from the public headers and fails on any warning. Says "skipped:" where Doxygen is missing.
find_program(doxygen doxygen)
if(NOT doxygen)
  message("skipped: doxygen is not installed")
  return()
endif()
set(headers ${BINARY}/headers)
file(REMOVE_RECURSE ${headers})
file(MAKE_DIRECTORY ${headers})
execute_process(COMMAND python3 ${SOURCE}/cmake/doxygen_input.py ${SOURCE} ${headers} sim topologies workloads calibrate traces tools
                COMMAND_ERROR_IS_FATAL ANY)
file(READ ${SOURCE}/Doxyfile settings)
file(WRITE ${BINARY}/Doxyfile "${settings}\nOUTPUT_DIRECTORY = ${BINARY}\n${MORE}\n")
execute_process(COMMAND ${doxygen} ${BINARY}/Doxyfile WORKING_DIRECTORY ${headers} COMMAND_ERROR_IS_FATAL ANY)
