/** The positions and the pool of a market as its queued inheritances and deleveragings will leave them, and the pool without what adjustments may take. */
import { touchedAccounts } from '../../domain/actions/action.ts'
import type { MarketPositions } from '../../domain/risk/market-positions.ts'
import { type BackstopAccount, PendingMoves } from '../../domain/risk/pending-moves.ts'
import type { RiskPrices } from '../../domain/risk/score-bounds.ts'
import type { Address, Quote, UserId } from '../../domain/units.ts'
import type { MarketTransaction } from './ports.ts'

export interface QueuedMoves {
  readonly moves: PendingMoves
  /** How many actions are in the queue. */
  readonly count: number
}

/** `users`: known accounts, to which those that the actions name and the backstop are added. Positions of accounts that are added later are read, too. */
export async function readPendingMoves(
  transaction: MarketTransaction,
  positions: MarketPositions,
  prices: RiskPrices,
  users = new Map<Address, UserId>(),
): Promise<QueuedMoves> {
  const pending = await transaction.pendingMoves()
  const { backstop, removals } = transaction.snapshot
  const named = new Set([
    ...pending.flatMap(touchedAccounts),
    ...(backstop === null ? [] : [backstop.address]),
  ])
  for (const [address, account] of await transaction.users(named)) users.set(address, account)
  const matched = (address: Address) => positions.of(users.get(address) as UserId)
  const moves = new PendingMoves(prices, await backstopAccount(transaction, users), {
    matched,
    pool: (positions.pool - removals) as Quote,
  })
  for (const action of pending) moves.apply(action)
  return { moves, count: pending.length }
}

async function backstopAccount(
  { snapshot: { backstop }, freeOf }: MarketTransaction,
  users: ReadonlyMap<Address, UserId>,
): Promise<BackstopAccount | null> {
  if (backstop === null) return null
  const account = users.get(backstop.address)
  return { ...backstop, free: account === undefined ? (0n as Quote) : await freeOf(account) }
}
