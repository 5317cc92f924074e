#include "warm_counter.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <sys/syscall.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <new>

namespace {

thread_local millrace::WarmCounts counts __attribute__((tls_model("initial-exec")));

/// Where a shared library's code lies.
struct CodeRange {
  uintptr_t begin = 0;
  uintptr_t end = 0;
};

int FindOneDnn(dl_phdr_info* info, size_t, void* range) {
  if (std::strstr(info->dlpi_name, "libdnnl") == nullptr) return 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& header = info->dlpi_phdr[i];
    if (header.p_type != PT_LOAD || (header.p_flags & PF_X) == 0) continue;
    auto* code = static_cast<CodeRange*>(range);
    code->begin = info->dlpi_addr + header.p_vaddr;
    code->end = code->begin + header.p_memsz;
  }
  return 1;
}

CodeRange one_dnn;
const int found_one_dnn = dl_iterate_phdr(FindOneDnn, &one_dnn);

bool IsOneDnn(const void* caller) {
  const auto address = reinterpret_cast<uintptr_t>(caller);
  return address >= one_dnn.begin && address < one_dnn.end;
}

[[maybe_unused]] void CountAllocation(const void* caller) {
  ++(IsOneDnn(caller) ? counts.one_dnn_allocations : counts.allocations);
}

[[maybe_unused]] void CountLock(const void* caller) { ++(IsOneDnn(caller) ? counts.one_dnn_locks : counts.locks); }

}  // namespace

namespace millrace {

WarmCounts WarmCountsNow() { return counts; }

}  // namespace millrace

#ifndef MILLRACE_SANITIZED

extern "C" {

void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* memory, size_t size);
void* __libc_memalign(size_t alignment, size_t size);
void __libc_free(void* memory);

void* malloc(size_t size) {
  CountAllocation(__builtin_return_address(0));
  return __libc_malloc(size);
}
void* calloc(size_t count, size_t size) {
  CountAllocation(__builtin_return_address(0));
  return __libc_calloc(count, size);
}
void* realloc(void* memory, size_t size) {
  CountAllocation(__builtin_return_address(0));
  return __libc_realloc(memory, size);
}
void* memalign(size_t alignment, size_t size) {
  CountAllocation(__builtin_return_address(0));
  return __libc_memalign(alignment, size);
}
void* aligned_alloc(size_t alignment, size_t size) {
  CountAllocation(__builtin_return_address(0));
  return __libc_memalign(alignment, size);
}
int posix_memalign(void** memory, size_t alignment, size_t size) {
  CountAllocation(__builtin_return_address(0));
  *memory = __libc_memalign(alignment, size);
  return *memory == nullptr ? ENOMEM : 0;
}
void free(void* memory) { __libc_free(memory); }

int memcmp(const void* a, const void* b, size_t size) {
  ++counts.comparisons;
  const auto* left = static_cast<const volatile unsigned char*>(a);
  const auto* right = static_cast<const volatile unsigned char*>(b);
  for (size_t i = 0; i < size; ++i) {
    const int difference = int{left[i]} - int{right[i]};
    if (difference != 0) return difference;
  }
  return 0;
}
int bcmp(const void* a, const void* b, size_t size) { return memcmp(a, b, size); }
int strcmp(const char* a, const char* b) {
  ++counts.comparisons;
  const volatile char* left = a;
  const volatile char* right = b;
  while (*left != 0 && *left == *right) ++left, ++right;
  return int{static_cast<unsigned char>(*left)} - int{static_cast<unsigned char>(*right)};
}

}  // extern "C"

// The allocation is the caller's, who may be oneDNN, not the C++ library's.
void* operator new(std::size_t size) {
  CountAllocation(__builtin_return_address(0));
  void* memory = __libc_malloc(size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void* operator new[](std::size_t size) {
  CountAllocation(__builtin_return_address(0));
  void* memory = __libc_malloc(size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void operator delete(void* memory) noexcept { __libc_free(memory); }
void operator delete[](void* memory) noexcept { __libc_free(memory); }
void operator delete(void* memory, std::size_t) noexcept { __libc_free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { __libc_free(memory); }

namespace {

/// The function of this name that comes after ours. Found by whoever asks first, and by others meanwhile: the guard of
/// a local static would wait by a call of what it guards.
template <class Function>
Function Next(std::atomic<Function>* found, const char* name) {
  Function next = found->load(std::memory_order_relaxed);
  if (next == nullptr) {
    next = reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
    found->store(next, std::memory_order_relaxed);
  }
  return next;
}

}  // namespace

#define MR_COUNTED_LOCK(name, parameters, arguments)         \
  extern "C" int name parameters {                           \
    static constinit std::atomic<int(*) parameters> found{}; \
    CountLock(__builtin_return_address(0));                  \
    return Next(&found, #name) arguments;                    \
  }

MR_COUNTED_LOCK(pthread_mutex_lock, (pthread_mutex_t * mutex), (mutex))
MR_COUNTED_LOCK(pthread_mutex_trylock, (pthread_mutex_t * mutex), (mutex))
MR_COUNTED_LOCK(pthread_rwlock_rdlock, (pthread_rwlock_t * lock), (lock))
MR_COUNTED_LOCK(pthread_rwlock_wrlock, (pthread_rwlock_t * lock), (lock))
MR_COUNTED_LOCK(pthread_cond_wait, (pthread_cond_t * condition, pthread_mutex_t* mutex), (condition, mutex))
MR_COUNTED_LOCK(pthread_cond_signal, (pthread_cond_t * condition), (condition))
MR_COUNTED_LOCK(pthread_cond_broadcast, (pthread_cond_t * condition), (condition))

// What std::atomic waits and wakes with.
extern "C" long syscall(long number, ...) {
  static constinit std::atomic<long (*)(long, ...)> found{};
  if (number == SYS_futex) ++counts.futexes;
  va_list list;
  va_start(list, number);
  long arguments[6];
  for (long& argument : arguments) argument = va_arg(list, long);
  va_end(list);
  return Next(&found, "syscall")(number, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4],
                                 arguments[5]);
}

#endif
