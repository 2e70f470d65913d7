/** Salts in sequence: neighbours share a storage word on chain, which makes a fill cheaper than with random salts. */

export interface SaltSequence {
  /** Never gives the same salt twice. */
  next(): bigint
}

const END = 1n << 53n

/**
 * Counts up from `start`. Without one it begins at the present millisecond x 2^10, so that a restarted program that kept nothing
 * stays ahead of itself as long as it places fewer than 1,024 orders per millisecond; programs that share one account must persist
 * their salts or keep to ranges of their own. `onTaken` is told before the salt is used: persist it there.
 */
export function saltSequence(start?: bigint, onTaken: (salt: bigint) => void = () => {}): SaltSequence {
  let following = start ?? BigInt(Date.now() % 2 ** 42) << 10n
  return {
    next() {
      if (following < 0n || following >= END) throw new RangeError('salts are integers below 2^53')
      const salt = following
      following += 1n
      onTaken(salt)
      return salt
    },
  }
}
