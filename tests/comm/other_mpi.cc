// Looks like libmillrace_mpi.so of another version of Millrace.
extern "C" {
[[gnu::visibility("default")]] const char* millrace_mpi_tag() { return "Millrace 0.0.1, compiler 1"; }
[[gnu::visibility("default")]] void millrace_mpi_open() {}
}
