/** Decides facts of the bank, session keys and the forwarder; they become accounts rows. */
import type {
  BankPauseFact,
  ForwardRequestExecutedFact,
  LedgerMoved,
  LoggedFact,
  MarginNoncesInvalidatedFact,
  SessionKeyUpdated,
} from '../../../chain/facts.ts'
import type { SessionKeyChanged, SessionKeyState } from '../../../journal/accounts-row.ts'
import { isOpenRelay } from '../../../relays/operation.ts'
import {
  endedRelay,
  type RelayChange,
  type RelayEnd,
  relayEffectOf,
  relayEndOf,
  relayRow,
} from '../../../relays/stored-relay.ts'
import type { Millis } from '../../../units.ts'
import { ACCOUNTS, type Draft } from '../../draft.ts'
import type { ExchangeState } from '../../state.ts'
import { BANK, keyOfSessionKey, type RelayRow } from '../../tables/chain.ts'
import { cancelSignedBy, cancelUncovered } from './cancel-orders.ts'
import { blockTime, type FactContext, minedAt, userOf } from './fact-context.ts'
import { nonceFloor } from './read.ts'

type Log = LoggedFact['log']

export function moveLedger(context: FactContext, fact: LedgerMoved, log: Log): void {
  const { draft } = context
  const account = userOf(context, fact.account)
  const { block, tx_hash, log_index, at } = minedAt(context, log)
  draft.write(ACCOUNTS, {
    kind: 'balance_changed',
    cause: fact.cause,
    rollback: false,
    user_id: account,
    free_delta: fact.freeDelta.toString(),
    pending_withdrawal_delta: fact.pendingDelta.toString(),
    block,
    tx_hash,
    log_index,
    at,
  })
  if (fact.cause === 'withdrawal_request') cancelUncovered(draft, account, blockTime(context))
}

/** A pause that ends early ends with its block. */
export function pauseBank(context: FactContext, { endsAt }: BankPauseFact, log: Log): void {
  const { draft } = context
  const mined = minedAt(context, log)
  const before = draft.state.bank.get(BANK)?.pause_ends_at ?? 0
  draft.write(ACCOUNTS, {
    kind: 'bank_pause_changed',
    rollback: false,
    before,
    ends_at: endsAt ?? mined.at / 1000,
    ...mined,
  })
}

// ---------------------------------------------------------------------- session keys

function keyState(state: ExchangeState, owner: string, key: string): SessionKeyState | null {
  const row = state.sessionKeys.get(keyOfSessionKey({ owner, key }))
  if (row === undefined) return null
  const { permissions, registered_at, expires_at, revoked_at } = row
  return { permissions, registered_at, expires_at, revoked_at }
}

const NO_KEY: SessionKeyState = { permissions: 0, registered_at: 0, expires_at: 0, revoked_at: null }

export function updateSessionKey(
  context: FactContext,
  { owner, key, change }: SessionKeyUpdated,
  log: Log,
): void {
  const before = keyState(context.draft.state, owner, key)
  const after: SessionKeyState =
    'revoked_at' in change ? { ...(before ?? NO_KEY), ...change } : { ...change, revoked_at: null }
  const mined = minedAt(context, log)
  changeKey(context.draft, {
    kind: 'session_key_changed',
    rollback: false,
    owner,
    key,
    before,
    after,
    ...mined,
  })
}

/** Changes a key, and ends orders whose signer may no longer sign. */
export function changeKey(draft: Draft, row: SessionKeyChanged): void {
  draft.write(ACCOUNTS, row)
  if (row.after === null || row.after.revoked_at !== null) cancelSignedBy(draft, row, row.at as Millis)
}

// ---------------------------------------------------------------------- relays

export const changeRelay = (draft: Draft, operation: RelayRow, change: RelayChange): void => {
  draft.write(ACCOUNTS, relayRow({ ...operation, ...change }))
}

/**
 * The events of the inner call precede this event in its transaction, so the state includes their effects.
 */
export function executeForward(context: FactContext, fact: ForwardRequestExecutedFact, log: Log): void {
  const { draft } = context
  const { signer, nonce, success } = fact
  const mined = minedAt(context, log)
  const before = draft.state.forwarderNonces.get(signer)?.next_nonce ?? 0
  for (const operation of draft.state.relayIndex.withNonce(signer, nonce)) {
    const end = endOf(draft.state, operation, success)
    // A failed operation stays failed, unless the chain has reached the requested state after all.
    if (end !== null && !isOpenRelay(operation.status)) continue
    changeRelay(draft, operation, endedRelay(mined, end))
  }
  draft.write(ACCOUNTS, {
    kind: 'forward_request_executed',
    rollback: false,
    signer,
    nonce,
    before,
    success,
    ...mined,
  })
}

/** Failure of the operation; null if the chain's state matches the request. */
function endOf(state: ExchangeState, operation: RelayRow, success: boolean): RelayEnd | null {
  const minimum = operation.minimum === null ? null : BigInt(operation.minimum)
  const effect = relayEffectOf({ ...operation, minimum })
  const { owner } = operation
  const isOfMarket = effect.kind === 'invalidate_margin_nonces'
  return relayEndOf(effect, success, {
    key: isOfMarket ? null : keyState(state, owner, effect.sessionKey),
    floor: isOfMarket ? nonceFloor(state, effect.marketId, owner) : 0n,
  })
}

export function invalidateNonces(context: FactContext, fact: MarginNoncesInvalidatedFact, log: Log): void {
  const { spec, account, minimum } = fact
  context.draft.write(spec.marketId, {
    kind: 'margin_nonces_invalidated',
    rollback: false,
    account,
    before: nonceFloor(context.draft.state, spec.marketId, account).toString(),
    minimum: minimum.toString(),
    ...minedAt(context, log),
  })
}
