/** What a mined part does to the accounts of the reference model: amounts per step, and one position change per account. */
import type { FillSettled, MatchedFill, PartSettled } from '../../../domain/journal/batch-rows.ts'

/** Reservation, fee and margin per step. Any numbers work. */
export const PER_STEP = { reserved: 10n, fee: 1n, margin: 4n }

export const settlementOf = <
  Fill extends Pick<MatchedFill, 'user_id' | 'side' | 'steps' | 'taker_steps' | 'held'>,
>(
  fill: Fill,
) => ({
  ...{ fill_id: '', order_id: '', matched: true },
  ...fill,
  fee: `${BigInt(fill.steps) * PER_STEP.fee}`,
  free_delta: `${-BigInt(fill.steps) * (PER_STEP.fee + PER_STEP.margin)}`,
  from_pending: `${fill.steps % 2}`,
  realized_pnl: `${fill.steps % 3}`,
})

/** A journal row has one position change per account. */
function mergeByUser(changes: readonly PartSettled['positions'][number][]): PartSettled['positions'] {
  return [...Map.groupBy(changes, ({ user_id }) => user_id).values()].map((own) => ({
    ...(own[0] as PartSettled['positions'][number]),
    size_delta: own.reduce((sum, { size_delta }) => sum + size_delta, 0),
    entry_notional_delta: `${own.reduce((sum, c) => sum + BigInt(c.entry_notional_delta), 0n)}`,
    folded_margin_delta: `${own.reduce((sum, c) => sum + BigInt(c.folded_margin_delta), 0n)}`,
  }))
}

/** One change per account. Every fill sets the leverage to 2, so before an account's second fill it is 2 already. */
export function positionChanges(
  price: number,
  fills: readonly FillSettled[],
  leverageOf: (userId: number) => number,
): PartSettled['positions'] {
  const seen = new Set<number>()
  const changes = fills.map(({ user_id, side, steps }) => {
    const leverage_before = seen.has(user_id) ? 2 : leverageOf(user_id)
    seen.add(user_id)
    return {
      user_id,
      size_delta: side === 'LONG' ? steps : -steps,
      entry_notional_delta: `${price * steps}`,
      folded_margin_delta: `${BigInt(steps) * PER_STEP.margin}`,
      leverage_before,
      leverage_after: 2,
    }
  })
  return mergeByUser(changes)
}
