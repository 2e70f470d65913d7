/** Comparisons of keys, nonces, relays, adjustments, liquidations, funding and averages. */
import type { DocumentTable } from '../../domain/exchange/document-table.ts'
import type { ExchangeState } from '../../domain/exchange/state.ts'
import type { Columns, Comparison, Facts } from './facts.ts'

const byKey = (rows: Iterable<object>, columns: readonly string[]): Facts =>
  new Map([...rows].map((row) => [columns.map((name) => (row as Columns)[name]).join('-'), row as Columns]))

const heldIn = (table: DocumentTable<never>, key: readonly string[]): Facts => byKey(table.rows(), key)

/** A table that has the columns of the state's rows, and maybe others. */
function comparison<Name extends keyof ExchangeState>(
  name: Name,
  key: readonly string[],
  stored: (tx: Parameters<Comparison['stored']>[0]) => Promise<readonly object[]>,
): Comparison {
  return {
    name,
    stored: async (tx) => byKey(await stored(tx), key),
    held: (state) => heldIn(state[name] as unknown as DocumentTable<never>, key),
  }
}

const liquidations: Comparison = {
  name: 'liquidations',
  async stored(tx) {
    return byKey(await tx.selectFrom('liquidations').selectAll().execute(), ['market_id', 'user_id'])
  },
  held: (state) =>
    byKey(
      [...state.liquidations.rows()].map((row) => ({
        market_id: row.marketId,
        user_id: row.account,
        number: row.number,
        stage: row.stage,
        start_size: row.startSize,
        order_id: row.orderId,
        widenings: row.widenings,
        resting: row.resting,
        queue_no: row.queueNo,
        attempts: row.attempts,
        failed_kind: row.failedKind,
        retry_at: row.retryAt,
        seen_seq: row.seenSeq,
        started_at: row.startedAt,
      })),
      ['market_id', 'user_id'],
    ),
}

const bank: Comparison = {
  name: 'bank',
  async stored(tx) {
    const rows = await tx.selectFrom('chain_progress').select('bank_pause_ends_at').execute()
    return byKey(
      rows.filter(({ bank_pause_ends_at }) => bank_pause_ends_at !== 0).map((row) => ({ bank: 1, ...row })),
      ['bank'],
    )
  },
  held: (state) =>
    byKey(
      [...state.bank.rows()]
        .filter(({ pause_ends_at }) => pause_ends_at !== 0)
        .map(({ pause_ends_at }) => ({ bank: 1, bank_pause_ends_at: pause_ends_at })),
      ['bank'],
    ),
}

export const chainComparisons: readonly Comparison[] = [
  comparison('sessionKeys', ['owner', 'key'], (tx) => tx.selectFrom('session_keys').selectAll().execute()),
  comparison('forwarderNonces', ['signer'], (tx) => tx.selectFrom('forwarder_nonces').selectAll().execute()),
  comparison('nonceFloors', ['market_id', 'account'], (tx) =>
    tx.selectFrom('margin_nonce_floors').selectAll().execute(),
  ),
  comparison('usedNonces', ['market_id', 'user_id', 'nonce'], (tx) =>
    tx.selectFrom('used_margin_nonces').selectAll().execute(),
  ),
  comparison('relays', ['operation_id'], (tx) => tx.selectFrom('relay_operations').selectAll().execute()),
  comparison('attempts', ['adjustment_id'], (tx) =>
    tx.selectFrom('adjustment_attempts').selectAll().execute(),
  ),
  comparison('fundings', ['market_id', 'action_id'], (tx) =>
    tx.selectFrom('funding_states').selectAll().execute(),
  ),
  comparison('averages', ['market_id'], (tx) => tx.selectFrom('price_averages').selectAll().execute()),
  comparison('switches', ['user_id'], (tx) => tx.selectFrom('cancel_switches').selectAll().execute()),
  comparison('firedSwitches', ['user_id', 'fired_at'], (tx) =>
    tx.selectFrom('fired_switches').selectAll().execute(),
  ),
  // No decision depends on the time of a registration, so the state has none.
  comparison('lanes', ['relayer'], (tx) =>
    tx.selectFrom('relayers').select(['address as relayer', 'chain_id', 'lane', 'next_nonce']).execute(),
  ),
  liquidations,
  bank,
]
