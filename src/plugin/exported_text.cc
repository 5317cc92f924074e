#include "plugin/exported_text.h"

#include <elf.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <optional>
#include <span>

#include "core/mapped_file.h"

namespace millrace {
namespace {

constexpr size_t kLongestText = 4096;

#if defined(__x86_64__)
constexpr uint16_t kMachine = EM_X86_64;
#elif defined(__aarch64__)
constexpr uint16_t kMachine = EM_AARCH64;
#else
constexpr uint16_t kMachine = EM_NONE;
#endif

/// The bytes of an untrusted file: every access is checked.
class ElfFile {
 public:
  explicit ElfFile(std::span<const uint8_t> bytes) : bytes_(bytes) {}

  template <class T>
  std::optional<T> At(uint64_t offset) const {
    if (offset > bytes_.size() || bytes_.size() - offset < sizeof(T)) return std::nullopt;
    T value;
    std::memcpy(&value, bytes_.data() + offset, sizeof(T));
    return value;
  }
  /// The string up to its zero byte, which must be within `room` bytes.
  std::optional<std::string> Text(uint64_t offset, uint64_t room) const {
    if (offset >= bytes_.size()) return std::nullopt;
    room = std::min({room, static_cast<uint64_t>(bytes_.size()) - offset, uint64_t{kLongestText}});
    const auto* start = reinterpret_cast<const char*>(bytes_.data()) + offset;
    const void* end = std::memchr(start, 0, room);
    if (end == nullptr) return std::nullopt;
    return std::string(start, static_cast<const char*>(end));
  }
  /// File offset of an address in the loaded object.
  std::optional<uint64_t> OffsetOf(const Elf64_Ehdr& header, uint64_t address) const {
    for (uint64_t i = 0; i < header.e_phnum; ++i) {
      const auto segment = At<Elf64_Phdr>(header.e_phoff + i * sizeof(Elf64_Phdr));
      if (!segment) return std::nullopt;
      if (segment->p_type != PT_LOAD || address < segment->p_vaddr) continue;
      if (address - segment->p_vaddr < segment->p_filesz) return segment->p_offset + (address - segment->p_vaddr);
    }
    return std::nullopt;
  }

 private:
  std::span<const uint8_t> bytes_;
};

std::optional<std::string> FindText(const ElfFile& file, const Elf64_Ehdr& header, std::string_view name) {
  for (uint64_t i = 0; i < header.e_shnum; ++i) {
    const auto table = file.At<Elf64_Shdr>(header.e_shoff + i * sizeof(Elf64_Shdr));
    if (!table) return std::nullopt;
    if (table->sh_type != SHT_DYNSYM) continue;
    const auto names = file.At<Elf64_Shdr>(header.e_shoff + uint64_t{table->sh_link} * sizeof(Elf64_Shdr));
    if (!names) return std::nullopt;
    for (uint64_t at = 0; at + sizeof(Elf64_Sym) <= table->sh_size; at += sizeof(Elf64_Sym)) {
      const auto symbol = file.At<Elf64_Sym>(table->sh_offset + at);
      if (!symbol) return std::nullopt;
      if (symbol->st_shndx == SHN_UNDEF || ELF64_ST_TYPE(symbol->st_info) != STT_OBJECT) continue;
      if (symbol->st_name >= names->sh_size) continue;
      if (file.Text(names->sh_offset + symbol->st_name, names->sh_size - symbol->st_name) != name) continue;
      const auto offset = file.OffsetOf(header, symbol->st_value);
      return offset ? file.Text(*offset, symbol->st_size) : std::nullopt;
    }
  }
  return std::nullopt;
}

}  // namespace

Result<std::string> ReadExportedText(const std::string& path, std::string_view name) {
  // Opening a pipe would block until it has a writer.
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  if (std::filesystem::is_other(status)) return BadData("\"" + path + "\" is no shared object");
  MR_ASSIGN(const MappedFile mapped, MappedFile::Open(path));
  const ElfFile file(mapped.bytes());
  const auto header = file.At<Elf64_Ehdr>(0);
  const bool is_elf = header && std::memcmp(header->e_ident, ELFMAG, SELFMAG) == 0;
  const bool is_ours = is_elf && header->e_ident[EI_CLASS] == ELFCLASS64 && header->e_ident[EI_DATA] == ELFDATA2LSB &&
                       (header->e_machine == kMachine || kMachine == EM_NONE);
  if (!is_elf || header->e_type != ET_DYN) return BadData("\"" + path + "\" is no shared object");
  if (!is_ours) return BadData("\"" + path + "\" is a shared object for another machine");
  const uint64_t sections = uint64_t{header->e_shnum} * sizeof(Elf64_Shdr);
  const uint64_t bytes = mapped.bytes().size();
  if (header->e_shoff > bytes || bytes - header->e_shoff < sections) {
    return BadData("\"" + path + "\" is cut off: it has " + std::to_string(bytes) +
                   " bytes, and its sections are listed from byte " + std::to_string(header->e_shoff) + " to " +
                   std::to_string(header->e_shoff + sections) + "; copy or link it again");
  }
  std::optional<std::string> text = FindText(file, *header, name);
  if (text) return std::move(*text);
  return NotFound("\"" + path + "\" exports no text " + std::string(name));
}

}  // namespace millrace
