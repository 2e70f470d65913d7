/** Who gets how much at the clearing price: the short side all, the long side pro rata, time deciding only the last step. */
import { invariant } from '../invariant.ts'
import type { Seq, Steps } from '../units.ts'

/** An order's steps that are eligible at the price. */
export interface Claim {
  readonly order: { readonly seq: Seq }
  readonly steps: Steps
}

/**
 * Shares of `volume` in the order of `claims`, which add up to it. In proportion to the claims, floored; the steps left over go
 * one each to the largest remainders, the earlier first. A share never exceeds its claim: the remainder of a whole share is 0,
 * and there are fewer steps left over than remainders above 0.
 */
export function proRata(claims: readonly Claim[], volume: Steps): Steps[] {
  const total = claims.reduce((sum, { steps }) => sum + steps, 0)
  invariant(volume <= total, 'a side trades at most what it claims')
  if (volume === total) return claims.map(({ steps }) => steps)

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

/** a x b mod c. In doubles while the product is exact. */
function remainderOf(a: number, b: number, c: number): number {
  const product = a * b
  return product <= Number.MAX_SAFE_INTEGER ? product % c : Number((BigInt(a) * BigInt(b)) % BigInt(c))
}

/** a x b / c, given what remains. */
function quotientOf(a: number, b: number, c: number, remainder: number): number {
  const product = a * b
  if (product <= Number.MAX_SAFE_INTEGER) return (product - remainder) / c
  return Number((BigInt(a) * BigInt(b)) / BigInt(c))
}
