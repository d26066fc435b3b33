# menger_compile_in_groups(TARGET): where MENGER_GROUPS is on, the compiler reads the target's sources several at a time, which
# builds of everything need half of the time for, instrumented ones a third. Elsewhere a source is an object of its own, so that
# a change compiles little and a source that lacks an include is found. Sources with options of their own stay alone.
function(menger_compile_in_groups target)
  get_target_property(sources ${target} SOURCES)
  list(FILTER sources INCLUDE REGEX "[.]cc$")
  list(FILTER sources EXCLUDE REGEX "^${menger_BINARY_DIR}")
  list(TRANSFORM sources REPLACE "^([^/].*)" "${CMAKE_CURRENT_SOURCE_DIR}/\\1")
  if(NOT MENGER_GROUPS OR NOT sources)
    return()
  endif()
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${menger_SOURCE_DIR}/tools/groups.py")
  execute_process(COMMAND python3 "${menger_SOURCE_DIR}/tools/groups.py" ${sources}
    OUTPUT_VARIABLE lines OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  string(REPLACE ";" "|" lines "${lines}")
  string(REPLACE "\n" ";" lines "${lines}")
  set(number 0)
  foreach(line ${lines})
    math(EXPR number "${number} + 1")
    string(REPLACE "|" ";" group "${line}")
    set_source_files_properties(${group} PROPERTIES UNITY_GROUP "${target}_${number}")
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
endfunction()
