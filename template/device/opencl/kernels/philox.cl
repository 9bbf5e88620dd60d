// The four 32-bit lanes of a block of random bits: philox.h.
uint4 philox_block(ulong seed, ulong block) {
  uint2 key = (uint2)((uint)seed, (uint)(seed >> 32));
  uint4 lanes = (uint4)((uint)block, (uint)(block >> 32), 0, 0);
  for (int round = 0; round < 10; ++round) {
    lanes = (uint4)(mul_hi(0xcd9e8d57u, lanes.z) ^ lanes.y ^ key.x, 0xcd9e8d57u * lanes.z,
                    mul_hi(0xd2511f53u, lanes.x) ^ lanes.w ^ key.y, 0xd2511f53u * lanes.x);
    key += (uint2)(0x9e3779b9u, 0xbb67ae85u);
  }
  return lanes;
}
