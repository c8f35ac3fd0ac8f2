// Runs vision_attention.cu on a CPU: reads five maps (12 numbers each) and qkv from files, writes the result.

#include "hopper_on_cpu.h"

#include "vision_attention.cu"

static TensorMap maps[5];
static std::vector<uint16_t> out;
static int units;

static void body() { vision_attention(maps[0], maps[1], maps[2], maps[3], maps[4], out.data(), units, 1.0f); }

static std::vector<char> read_all(const char* path) {
  FILE* file = std::fopen(path, "rb");
  if (!file) std::exit(2);
  std::vector<char> found;
  char part[65536];
  for (size_t count; (count = std::fread(part, 1, sizeof part, file)) > 0;) found.insert(found.end(), part, part + count);
  std::fclose(file);
  return found;
}

int main(int, char** arguments) {  // maps, qkv, where the result goes, its numbers, units, blocks
  const std::vector<char> numbers = read_all(arguments[1]), qkv = read_all(arguments[2]);
  for (int i = 0; i < 5; ++i) {
    maps[i].words[0] = reinterpret_cast<u64>(qkv.data());
    std::memcpy(maps[i].words + 1, numbers.data() + 12 * 8 * i, 12 * 8);
  }
  out.assign(std::atoi(arguments[4]), 0x7FC0);
  units = std::atoi(arguments[5]);
  gridDim.x = std::atoi(arguments[6]);
  for (blockIdx.x = 0; blockIdx.x < gridDim.x; ++blockIdx.x) run_block(kThreads, body);
  FILE* file = std::fopen(arguments[3], "wb");
  std::fwrite(out.data(), 2, out.size(), file);
  std::fclose(file);
  return 0;
}
