/** Assigns salts in sequence: consecutive salts share a storage word on chain, so a fill costs less gas than with random salts. */

export interface SaltSequence {
  /** Never returns the same salt twice. */
  next(): bigint
}

const END = 1n << 53n
/** Salts per millisecond. The time of a start fits below `END` until 2109. */
const SALTS_PER_MS = 1n << 11n
/** Starts of one millisecond are spread over so many salts, those of 128 ms. */
const SPREAD = 1n << 18n

function startOfNow(): bigint {
  const [random = 0] = crypto.getRandomValues(new Uint32Array(1))
  return BigInt(Date.now()) * SALTS_PER_MS + (BigInt(random) % SPREAD)
}

/**
 * Counts up from `start`. The default start is the current millisecond × 2^11 plus 18 random bits. A program that restarts without
 * persisted salts therefore repeats none after 256 ms, as long as it places fewer than 1,024 orders per millisecond, and programs that
 * start in the same millisecond have different salts at first. Programs that share one account for long must use separate ranges, or one
 * meets the salts of another after 131,072 orders on average. `persist` runs before `next` returns the salt.
 */
export function saltSequence(start = startOfNow(), persist: (salt: bigint) => void = () => {}): SaltSequence {
  let following = start
  return {
    next() {
      if (following < 0n || following >= END)
        throw new RangeError(`salt ${following} is out of range: salts are integers from 0 and below 2^53`)
      const salt = following
      following += 1n
      persist(salt)
      return salt
    },
  }
}
