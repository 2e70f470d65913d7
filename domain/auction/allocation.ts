/**
 * Distributes the traded volume among the orders of one side at the clearing price, in proportion to their
 * eligible steps.
 */
import { invariant } from '../invariant.ts'
import type { Seq, Steps } from '../units.ts'

/** The steps of one order that are eligible at the price. */
export interface Claim {
  readonly order: { readonly seq: Seq }
  readonly steps: Steps
}

/**
 * Shares of `volume` by size, in the order of `claims`. For example, volume 5 over claims of 3, 3 and 4 yields 1.5, 1.5
 * and 2: the earlier of the equal claims gets 2 steps.
 */
export function proRata(claims: readonly Claim[], volume: Steps): Steps[] {
  const total = claims.reduce((sum, { steps }) => sum + steps, 0)
  invariant(volume <= total, 'the volume is at most the sum of the claims')
  if (volume === total) return claims.map(({ steps }) => steps)

  // Each share is rounded down. The remaining steps go, one each, to the largest remainders.
  // No share exceeds its claim: a filled claim has remainder 0, and fewer steps than positive remainders remain.
  const remainders: number[] = []
  let leftOver: number = volume
  const shares = claims.map(({ steps }) => {
    const remainder = remainderOf(volume, steps, total)
    const share = quotientOf(volume, steps, total, remainder)
    remainders.push(remainder)
    leftOver -= share
    return share
  })
  if (leftOver > 0) {
    const seqAt = (at: number): number => (claims[at] as Claim).order.seq
    const largest = [...claims.keys()].sort(
      (a, b) => (remainders[b] as number) - (remainders[a] as number) || seqAt(a) - seqAt(b),
    )
    for (const at of largest.slice(0, leftOver)) shares[at] = ((shares[at] as number) + 1) as Steps
  }
  return shares as Steps[]
}

/** a × b mod c. Uses doubles while the product is a safe integer. */
function remainderOf(a: number, b: number, c: number): number {
  const product = a * b
  return product <= Number.MAX_SAFE_INTEGER ? product % c : Number((BigInt(a) * BigInt(b)) % BigInt(c))
}

/** floor(a × b / c), where `remainder` is a × b mod c. */
function quotientOf(a: number, b: number, c: number, remainder: number): number {
  const product = a * b
  if (product <= Number.MAX_SAFE_INTEGER) return (product - remainder) / c
  return Number((BigInt(a) * BigInt(b)) / BigInt(c))
}
