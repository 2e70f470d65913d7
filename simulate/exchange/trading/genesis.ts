/** Two markets and accounts with funds, as every member of a run starts. */
import { AppliedRows } from '../../../domain/exchange/applied-rows.ts'
import type { Entry } from '../../../domain/exchange/apply.ts'
import { createState } from '../../../domain/exchange/state.ts'
import { ACCOUNTS_SHARD, type JournalRow, marketShard } from '../../../domain/journal/journal-row.ts'
import type { MarketSpec } from '../../../domain/market/market.ts'
import { toStoredSpec } from '../../../domain/market/stored-spec.ts'
import type { Address, Millis, Price, UserId } from '../../../domain/units.ts'
import { perpetual } from '../../scenarios.ts'

export const MARKETS: readonly MarketSpec[] = [perpetual(1, 20), perpetual(2, 5)]
export const ACCOUNT_IDS = [1, 2, 3, 4, 5] as UserId[]
/** Around which the oracle price of both markets swings. */
export const ORACLE_TICKS = 1000
const SWING_TICKS = 25
const SWING_MS = 1_500

export function oraclePrice({ tick }: MarketSpec, at: Millis): Price {
  const swing = Math.round(SWING_TICKS * Math.sin(at / SWING_MS))
  return (tick * BigInt(ORACLE_TICKS + swing)) as Price
}

/** Small enough that orders are refused for want of margin. */
const DEPOSIT = 150n * 10n ** 18n

export const addressOf = (userId: number): Address => `0x${userId.toString(16).padStart(40, '0')}` as Address

function* rowsOfGenesis(): Generator<{ shard: string; row: JournalRow }> {
  for (const spec of MARKETS)
    yield { shard: marketShard(spec.marketId), row: { kind: 'market_listed', spec: toStoredSpec(spec) } }
  for (const userId of ACCOUNT_IDS) {
    const address = addressOf(userId)
    yield { shard: ACCOUNTS_SHARD, row: { kind: 'user_created', user_id: userId, address, at: 0 } }
    yield {
      shard: ACCOUNTS_SHARD,
      row: {
        kind: 'balance_changed',
        cause: 'deposit',
        rollback: false,
        user_id: userId,
        free_delta: DEPOSIT.toString(),
        pending_withdrawal_delta: '0',
        block: 1,
        tx_hash: `0x${'11'.repeat(32)}`,
        log_index: userId,
        at: 0,
      },
    }
  }
}

/** The rows before the first group. */
export function entriesOfGenesis(): Entry[] {
  const heads = new Map<string, number>()
  return [...rowsOfGenesis()].map(({ shard, row }) => {
    const seq = (heads.get(shard) ?? 0) + 1
    heads.set(shard, seq)
    return { shard, seq, row }
  })
}

/** The state before the first group. */
export function genesis(): AppliedRows {
  const applied = new AppliedRows(createState(), 0, 0 as Millis)
  for (const entry of entriesOfGenesis()) applied.apply(entry)
  applied.forget(applied.position())
  return applied
}
