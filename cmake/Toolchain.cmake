# Compiler, linker and cache settings shared by every target.
find_program(BT_CCACHE ccache)
if(BT_CCACHE)
  # Sloppiness: what ccache needs to serve objects made with a precompiled header. Depend: it
  # learns what a file includes from the compiler, not by preprocessing it once more.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_DEPEND=1
      CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
      ${BT_CCACHE})
endif()

find_program(BT_MOLD mold)
if(BT_MOLD AND NOT BRAINTRACE_SANITIZE)
  add_link_options(-fuse-ld=mold)
endif()

# -ffp-contract=off: the planned executor must agree bit for bit with the interpreter.
add_compile_options(-Wall -Wextra -Wpedantic -Werror -Wno-missing-field-initializers
                    -ffp-contract=off)
# -O1 compiles a quarter faster than -O2; what is timed runs in kernels, which set their own
# level.
set(CMAKE_CXX_FLAGS_RELEASE "-O1 -DNDEBUG")
# Looking for garbage below a gigabyte costs the compiler a tenth of its time.
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  add_compile_options(--param=ggc-min-expand=300 --param=ggc-min-heapsize=1000000)
endif()
if(BRAINTRACE_VERIFY)
  add_compile_definitions(BRAINTRACE_VERIFY)
endif()
if(BRAINTRACE_SANITIZE)
  add_compile_options(-fsanitize=${BRAINTRACE_SANITIZE} -fno-omit-frame-pointer
                      -fno-sanitize-recover=all -O1)
  add_link_options(-fsanitize=${BRAINTRACE_SANITIZE})
endif()
