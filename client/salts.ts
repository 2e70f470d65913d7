/** Assigns salts in sequence: consecutive salts share a storage word on chain, so a fill costs less gas than with random salts. */

export interface SaltSequence {
  /** Never returns the same salt twice. */
  next(): bigint
}

const END = 1n << 53n

/**
 * Counts up from `start`. The default start is the current millisecond × 2^10. A program that restarts without persisted salts
 * therefore repeats none, as long as it places fewer than 1,024 orders per millisecond. Programs that share one account must persist
 * their salts or use separate ranges. `persist` runs before `next` returns the salt.
 */
export function saltSequence(start?: bigint, persist: (salt: bigint) => void = () => {}): SaltSequence {
  let following = start ?? BigInt(Date.now() % 2 ** 42) << 10n
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
