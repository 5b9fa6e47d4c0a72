// The random numbers of NumPy's `default_rng`: its SeedSequence and PCG64.

const [INIT_A, MULT_A, INIT_B, MULT_B] = [0x43b0d7e5, 0x931e8875, 0x8b51f9dd, 0x58f38ded];
const [MIX_LEFT, MIX_RIGHT] = [0xca01f9dd, 0x4973f715];
const POOL = 4;
const MULTIPLIER = (2549297995355413924n << 64n) + 4865540595714422341n;
const BITS_128 = (1n << 128n) - 1n;
const BITS_64 = (1n << 64n) - 1n;

/** The 32-bit words of an integer, the lowest first. */
function wordsOf(number) {
  const words = [];
  let left = BigInt(number);
  do {
    words.push(Number(left & 0xffffffffn));
    left >>= 32n;
  } while (left > 0n);
  return words;
}

const folded = (value) => (value ^ (value >>> 16)) >>> 0;

/** A hash of words whose constant changes with each of them. */
function hasher(constant, multiplier) {
  return (word) => {
    const mixed = (word ^ constant) >>> 0;
    constant = Math.imul(constant, multiplier) >>> 0;
    return folded(Math.imul(mixed, constant) >>> 0);
  };
}

/** The first 64-bit words that NumPy's SeedSequence makes of some integers. */
function seedWords(integers, count) {
  const entropy = integers.flatMap(wordsOf);
  const hash = hasher(INIT_A, MULT_A);
  const mix = (x, y) => folded((Math.imul(MIX_LEFT, x) - Math.imul(MIX_RIGHT, y)) >>> 0);
  const pool = Array.from({ length: POOL }, (_, i) => hash(entropy[i] ?? 0));
  for (let from = 0; from < POOL; from++) {
    for (let to = 0; to < POOL; to++) if (from !== to) pool[to] = mix(pool[to], hash(pool[from]));
  }
  for (let from = POOL; from < entropy.length; from++) {
    for (let to = 0; to < POOL; to++) pool[to] = mix(pool[to], hash(entropy[from]));
  }
  const last = hasher(INIT_B, MULT_B);
  const words = Array.from({ length: 2 * count }, (_, i) => BigInt(last(pool[i % POOL])));
  return Array.from({ length: count }, (_, i) => words[2 * i] | (words[2 * i + 1] << 32n));
}

/** NumPy's generator with a seed of some integers: a function that draws the next 64 bits. */
function generator(integers) {
  const [stateHigh, stateLow, streamHigh, streamLow] = seedWords(integers, 4);
  const increment = ((((streamHigh << 64n) | streamLow) << 1n) | 1n) & BITS_128;
  const advance = (state) => (state * MULTIPLIER + increment) & BITS_128;
  let state = advance((increment + ((stateHigh << 64n) | stateLow)) & BITS_128);
  return () => {
    state = advance(state);
    const word = (state >> 64n) ^ (state & BITS_64);
    const turn = state >> 122n;
    return ((word >> turn) | (word << (64n - turn))) & BITS_64;
  };
}

/** `size` numbers below 2**62, as BigInts: `default_rng(integers).integers(2**62, size=size)`. */
export function randomIntegers(integers, size) {
  const next = generator(integers);
  return Array.from({ length: size }, () => next() >> 2n);
}

/** `size` numbers from low to high: `default_rng(integers).uniform(low, high, size)`. */
export function randomNumbers(integers, low, high, size) {
  const next = generator(integers);
  return Float64Array.from({ length: size }, () => low + (high - low) * (Number(next() >> 11n) / 2 ** 53));
}
