/** Who gets how much at the clearing price: the short side all, the long side pro rata, time deciding only the last step. */
import { invariant } from './invariant.ts'
import type { Seq, Steps } from './units.ts'

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

  const shares = claims.map(({ steps }) => divide(volume, steps, total))
  const leftOver = volume - shares.reduce((sum, { quotient }) => sum + quotient, 0)
  if (leftOver > 0) {
    const byRemainder = shares.map((share, i) => ({ share, seq: (claims[i] as Claim).order.seq }))
    byRemainder.sort((a, b) => b.share.remainder - a.share.remainder || a.seq - b.seq)
    for (const { share } of byRemainder.slice(0, leftOver)) share.quotient += 1
  }
  return shares.map(({ quotient }) => quotient as Steps)
}

/** a x b / c, floored, and what remains. Exact: in doubles while the product is a safe integer. */
function divide(a: number, b: number, c: number): { quotient: number; remainder: number } {
  const product = a * b
  if (product <= Number.MAX_SAFE_INTEGER) {
    const remainder = product % c
    return { quotient: (product - remainder) / c, remainder }
  }
  const exact = BigInt(a) * BigInt(b)
  const divisor = BigInt(c)
  return { quotient: Number(exact / divisor), remainder: Number(exact % divisor) }
}
