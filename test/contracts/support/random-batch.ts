/** Random balanced batches, for tests that settle many of them. */
import type { Wallet } from 'ethers'
import type { Exchange, FillInput } from '../../support/exchange.ts'

/** Divides `total` into at most one positive share per user. */
function shares(total: number, users: readonly Wallet[], random: (end: number) => number): number[] {
  const cuts = Array.from({ length: users.length - 1 }, () => 1 + random(total - 1)).sort((a, b) => a - b)
  return [...cuts, total].map((cut, index) => cut - (cuts[index - 1] ?? 0)).filter((share) => share > 0)
}

/** Some users buy, all other users sell the same quantity, with partial fills, market orders and mixed taker shares. */
export function randomFills(
  exchange: Exchange,
  price: number,
  batch: number,
  random: (end: number) => number,
): FillInput[] {
  const shuffled = [...exchange.users].sort(() => random(3) - 1)
  const buyers = shuffled.slice(0, 1 + random(shuffled.length - 1))
  const sellers = shuffled.filter((user) => !buyers.includes(user))
  const total = 20 + random(200)
  let taker = total
  const sideOf = (users: readonly Wallet[], side: 'LONG' | 'SHORT'): FillInput[] =>
    shares(total, users, random).map((fill, index) => {
      const mine = Math.min(taker, random(fill + 1))
      taker -= mine
      const extra = random(2) === 0 ? 0 : 1 + random(50)
      const limit = random(4) === 0 ? 0 : price
      const salt = BigInt(batch * 16 + index)
      return {
        by: users[index]!,
        side,
        fill,
        quantity: fill + extra,
        limit,
        taker: mine,
        salt,
        slot: extra === 0 ? null : random(3),
        leverage: 1 + random(3),
      }
    })
  const fills = [...sideOf(buyers, 'LONG'), ...sideOf(sellers, 'SHORT')]
  return spread(fills, taker)
}

/** Adds the missing taker quantity to the fills that have room for it. */
function spread(fills: readonly FillInput[], missing: number): FillInput[] {
  let left = missing
  return fills.map((fill) => {
    const room = Math.min(left, fill.fill - (fill.taker ?? 0))
    left -= room
    return { ...fill, taker: (fill.taker ?? 0) + room }
  })
}
