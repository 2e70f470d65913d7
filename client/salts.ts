/** Assigns salts in sequence: consecutive salts share a storage word on chain, so a fill costs less gas than with random salts. */

export interface SaltSequence {
  /** Never returns the same salt twice. */
  next(): bigint
}

const END = 1n << 53n
/** Salts per millisecond. Start times fit below `END` until 2109. */
const SALTS_PER_MS = 1n << 11n
/** Range of random start offsets: the salts of 128 ms. */
const SPREAD = 1n << 18n

function startOfNow(): bigint {
  const [random = 0] = crypto.getRandomValues(new Uint32Array(1))
  return BigInt(Date.now()) * SALTS_PER_MS + (BigInt(random) % SPREAD)
}

/**
 * Counts up from `start`. `persist` runs before `next` returns the salt.
 * The default start is the current millisecond × 2^11 plus 18 random bits. A program that restarts without
 * persisted salts repeats no salt after 256 ms, if it places fewer than 1,024 orders per millisecond.
 * Programs that start in the same millisecond begin with different salts. Programs that share one account for
 * long must use separate ranges: two default sequences collide after 131,072 orders on average.
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
