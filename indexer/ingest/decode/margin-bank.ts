/** Events of MarginBank: how each account's free balance and pending withdrawal change, and when the bank is paused. */

import type { BankPauseFact, IgnoredEvent, LedgerMoved } from '../../../domain/chain/facts.ts'
import { MarginBank__factory } from '../../../typechain-types/factories/MarginBank__factory.ts'
import type { MarginBankInterface } from '../../../typechain-types/MarginBank.ts'
import { addressOf, decodeEvent, type EventTable, IGNORED, type LogData } from './event-table.ts'

const BANK = MarginBank__factory.createInterface()

const moved = (
  cause: LedgerMoved['cause'],
  account: unknown,
  freeDelta: bigint,
  pendingDelta: bigint,
): LedgerMoved => ({ kind: 'ledger_moved', cause, account: addressOf(account), freeDelta, pendingDelta })

const EVENTS: EventTable<MarginBankInterface, LedgerMoved | BankPauseFact, null> = {
  Deposited: ({ account, amount }) => moved('deposit', account, amount, 0n),
  WithdrawalRequested: ({ account, amount }) => moved('withdrawal_request', account, -BigInt(amount), amount),
  Withdrawn: ({ account, amount }) => moved('withdrawal', account, 0n, -BigInt(amount)),
  FeesCollected: ({ treasury, amount }) => moved('fees_collected', treasury, amount, 0n),
  MarketAnnounced: IGNORED,
  AnnouncementWithdrawn: IGNORED,
  MarketListed: IGNORED,
  TreasuryChanged: IGNORED,
  Paused: ({ endsAt }) => ({ kind: 'bank_pause_changed', endsAt: Number(endsAt) }),
  Unpaused: () => ({ kind: 'bank_pause_changed', endsAt: null }),
  AuthorityUpdated: IGNORED,
}

export const decodeBankLog = (log: LogData): LedgerMoved | BankPauseFact | IgnoredEvent =>
  decodeEvent(BANK, EVENTS, log, null)
