import { expect } from 'chai'
import { describe, it } from 'mocha'
import type { BalanceChanged } from '../../domain/journal/accounts-row.ts'
import type { PartSettled } from '../../domain/journal/batch-rows.ts'
import type { JournalRow } from '../../domain/journal/journal-row.ts'
import { fold, noHoldings } from '../../stack/audit/fold.ts'

const deposit = {
  kind: 'balance_changed',
  rollback: false,
  user_id: 1,
  free_delta: '100',
  pending_withdrawal_delta: '0',
}
const settled = {
  kind: 'part_settled',
  rollback: false,
  fills: [{ user_id: 1, free_delta: '-30', from_pending: '0' }],
  positions: [{ user_id: 1, size_delta: -4, entry_notional_delta: '40', folded_margin_delta: '29' }],
}

const foldAll = (rows: readonly object[]) => {
  const holdings = noHoldings()
  for (const row of rows) fold(holdings, row as JournalRow, 7)
  return { balance: holdings.balances.get(1), position: holdings.positions.get('1:7') }
}

describe('stack/audit fold', () => {
  it('when rows deposit and settle, it adds up balances and positions', () => {
    const { balance, position } = foldAll([deposit, settled, { kind: 'order_placed', reserved: '5' }])
    expect(balance).to.deep.equal({ free: 70n, pending: 0n })
    expect(position).to.deep.equal({ size: -4, entryNotional: 40n, foldedMargin: 29n })
  })

  it('when rows are rolled back, it returns to zero', () => {
    const back = (row: object) => ({ ...row, rollback: true }) as BalanceChanged | PartSettled
    const { balance, position } = foldAll([deposit, settled, back(settled), back(deposit)])
    expect(balance).to.deep.equal({ free: 0n, pending: 0n })
    expect(position).to.deep.equal({ size: 0, entryNotional: 0n, foldedMargin: 0n })
  })

  it('when a settlement exceeds the free balance, it takes the rest from the pending withdrawal', () => {
    const request = { ...deposit, free_delta: '-90', pending_withdrawal_delta: '90' }
    const short = { ...settled, fills: [{ user_id: 1, free_delta: '-30', from_pending: '20' }] }
    expect(foldAll([deposit, request, short]).balance).to.deep.equal({ free: 0n, pending: 70n })
  })
})
