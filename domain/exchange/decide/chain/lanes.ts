/**
 * Sends a market's queued actions to the chain: numbers, signatures, transactions.
 * Workers sign and send; the state stores numbers, nonces and hashes.
 */
import type { SignableAction } from '../../../actions/action-rules.ts'
import type { MarketId, Millis } from '../../../units.ts'
import { CHAIN } from '../../apply.ts'
import { ACCOUNTS, type Draft } from '../../draft.ts'
import type { Inputs } from '../../inputs.ts'
import { pendingActions } from '../../queued-actions.ts'
import type { ExchangeState } from '../../state.ts'
import { keyOfTransaction } from '../../tables/blocks.ts'
import { type ActionRow, actionKey } from '../../tables/markets.ts'
import { partOf, signableOf } from './signable.ts'
import { isAssigned } from './signatures.ts'

/**
 * A relayer key signs for a lane from now on, perhaps after other keys. `firstNonce` applies unless a higher
 * nonce has been assigned.
 */
export interface RegisterLane {
  readonly kind: 'register_lane'
  readonly relayer: string
  readonly chainId: number
  readonly lane: string
  readonly firstNonce: number
}

/** Assigns nonces to transactions other than market actions: adjustments, relays, the faucet, and no-ops. */
export interface ReserveNonces {
  readonly kind: 'reserve_nonces'
  readonly relayer: string
  readonly count: number
}

/**
 * Requests the next queued action with its numbers for signing. `latestAsOf`: a later action is too far ahead of the chain.
 */
export interface NextAction {
  readonly kind: 'next_action'
  readonly marketId: MarketId
  readonly relayer: string
  readonly latestAsOf: Millis
}

/**
 * The worker stored a transaction's bytes.
 * `marketId` and `queueNo` are null for a transaction of no action, or for a replacement of an action's first transaction.
 */
export interface SignedTransaction {
  readonly kind: 'signed'
  readonly marketId: MarketId | null
  readonly queueNo: number | null
  readonly relayer: string
  readonly nonce: number
  readonly attempt: number
  readonly hash: string
  readonly purpose: string
}

/** The market action signed with this nonce of the key has been broadcast. */
export interface SubmittedAction {
  readonly kind: 'submitted'
  readonly marketId: MarketId
  readonly relayer: string
  readonly nonce: number
}

/** Adopts the contract's last action id. `hasOpen`: a transaction of the lane waits for the chain. */
export interface AdoptActionId {
  readonly kind: 'adopt_action_id'
  readonly marketId: MarketId
  readonly actionId: number
  readonly hasOpen: boolean
}

/**
 * Requests which transactions with these nonces may be sent.
 * A worker with stored bytes may not know whether the exchange accepted them.
 */
export interface SignedHashes {
  readonly kind: 'signed_hashes'
  readonly relayer: string
  readonly nonces: readonly number[]
}

/** The worker has no work left as of the market's row `version`. */
export interface LaneIdle {
  readonly kind: 'idle'
  readonly marketId: MarketId
  readonly version: number
}

export type LaneCommand =
  | RegisterLane
  | ReserveNonces
  | NextAction
  | SignedTransaction
  | SubmittedAction
  | AdoptActionId
  | SignedHashes
  | LaneIdle

export type LaneAnswer =
  | { readonly kind: 'done' }
  /** The key belongs to another lane permanently: two lanes would assign its nonces twice. */
  | { readonly kind: 'key_taken'; readonly lane: string }
  | { readonly kind: 'unknown_relayer' }
  | { readonly kind: 'nonces'; readonly first: number }
  | { readonly kind: 'none' }
  | {
      readonly kind: 'action'
      readonly queueNo: number
      readonly actionId: number
      readonly nonce: number
      readonly asOf: Millis
      readonly action: SignableAction
    }
  /** Hash to send: the transaction that was signed first. */
  | { readonly kind: 'hash'; readonly hash: string }
  | { readonly kind: 'hashes'; readonly hashes: readonly string[] }
  /** `replaced`: previous id of the exchange; null if it was equal. */
  | { readonly kind: 'adopted'; readonly replaced: number | null }
  /** The action no longer waits for this signature. */
  | { readonly kind: 'ended' }
  | { readonly kind: 'busy'; readonly version: number }

export function decideLane(draft: Draft, inputs: Inputs, command: LaneCommand): LaneAnswer {
  switch (command.kind) {
    case 'register_lane':
      return registerLane(draft, command)
    case 'reserve_nonces':
      return reserveNonces(draft, command)
    case 'next_action':
      return nextAction(draft, command)
    case 'signed':
      return noteSigned(draft, inputs, command)
    case 'submitted':
      return noteSubmitted(draft, inputs, command)
    case 'adopt_action_id':
      return adoptActionId(draft, command)
    case 'signed_hashes':
      return signedHashes(draft.state, command)
    case 'idle':
      return noteIdle(draft.state, command)
  }
}

// ---------------------------------------------------------------------- nonces

function registerLane(draft: Draft, { relayer, chainId, lane, firstNonce }: RegisterLane): LaneAnswer {
  const known = draft.state.lanes.get(relayer)
  if (known?.lane != null && known.lane !== lane) return { kind: 'key_taken', lane: known.lane }
  if (known !== undefined && known.lane === lane && known.next_nonce >= firstNonce) return { kind: 'done' }
  const next_nonce = Math.max(known?.next_nonce ?? 0, firstNonce)
  draft.write(ACCOUNTS, {
    kind: 'lane_registered',
    relayer,
    chain_id: chainId,
    lane: known?.lane ?? lane,
    next_nonce,
  })
  return { kind: 'done' }
}

function reserveNonces(draft: Draft, { relayer, count }: ReserveNonces): LaneAnswer {
  const lane = draft.state.lanes.get(relayer)
  if (lane === undefined) return { kind: 'unknown_relayer' }
  const first = lane.next_nonce
  draft.write(ACCOUNTS, { kind: 'nonces_assigned', relayer, next_nonce: first + count })
  return { kind: 'nonces', first }
}

// ---------------------------------------------------------------------- from queued to sent

/** A numbered action keeps its numbers until it is signed. */
function nextAction(draft: Draft, { marketId, relayer, latestAsOf }: NextAction): LaneAnswer {
  const { state } = draft
  const row = firstQueued(state, marketId)
  if (row === undefined || row.as_of > latestAsOf) return { kind: 'none' }
  if (isHandingOver(state, marketId, relayer)) return { kind: 'none' }
  const lane = state.lanes.get(relayer)
  if (lane === undefined) return { kind: 'unknown_relayer' }
  const isNumbered = row.action_id !== null && row.nonce !== null && row.relayer === relayer
  const nonce = isNumbered ? (row.nonce as number) : lane.next_nonce
  const actionId = row.action_id ?? state.progress.need(marketId).lastActionId + 1
  const action = signableOf(state, row, actionId)
  const { queue_no: queueNo, as_of } = row
  if (!isNumbered)
    draft.write(marketId, { kind: 'action_numbered', queue_no: queueNo, action_id: actionId, relayer, nonce })
  return { kind: 'action', queueNo, actionId, nonce, asOf: as_of as Millis, action }
}

/**
 * An action signed by a former key waits for the chain. The chain orders only transactions of the same key.
 */
const isHandingOver = (state: ExchangeState, marketId: MarketId, relayer: string): boolean =>
  pendingActions(state, marketId).some((action) => action.status !== 'QUEUED' && action.relayer !== relayer)

const firstQueued = (state: ExchangeState, marketId: MarketId): ActionRow | undefined =>
  pendingActions(state, marketId).find(({ status }) => status === 'QUEUED')

/** The first signature of an attempt wins. */
function noteSigned(draft: Draft, { now }: Inputs, command: SignedTransaction): LaneAnswer {
  const { marketId, queueNo, relayer, nonce, attempt, hash, purpose } = command
  const { state } = draft
  const first = state.transactions.get(keyOfTransaction({ relayer, nonce, attempt }))
  if (first !== undefined) return { kind: 'hash', hash: first.tx_hash }
  if (!isAssigned(state, relayer, nonce)) return { kind: 'ended' }
  if (
    attempt > 1 &&
    state.transactions.get(keyOfTransaction({ relayer, nonce, attempt: attempt - 1 })) === undefined
  )
    return { kind: 'ended' }
  if (marketId !== null && queueNo !== null && attempt === 1) {
    const action = state.actions.get(actionKey(marketId, queueNo))
    const isWaiting = action?.status === 'QUEUED' && action.nonce === nonce && action.relayer === relayer
    if (!isWaiting) return { kind: 'ended' }
    draft.write(marketId, { kind: 'action_signed', queue_no: queueNo, tx_hash: hash, at: now })
    return { kind: 'hash', hash }
  }
  draft.write(CHAIN, { kind: 'transaction_signed', relayer, nonce, attempt, tx_hash: hash, purpose, at: now })
  return { kind: 'hash', hash }
}

function noteSubmitted(draft: Draft, { now }: Inputs, command: SubmittedAction): LaneAnswer {
  const { marketId, relayer, nonce } = command
  const { state } = draft
  const action = pendingActions(state, marketId).find(
    (pending) => pending.status === 'SIGNED' && pending.nonce === nonce && pending.relayer === relayer,
  )
  if (action === undefined) return { kind: 'ended' }
  const { queue_no: queueNo } = action
  const { tx_hash } = state.transactions.need(keyOfTransaction({ relayer, nonce, attempt: 1 }))
  const sent = { action_id: action.action_id as number, tx_hash, at: now }
  const part = partOf(action)
  if (part === null) draft.write(marketId, { kind: 'action_submitted', queue_no: queueNo, ...sent })
  else draft.write(marketId, { kind: 'part_submitted', batch_id: part.batchId, part: part.part, ...sent })
  return { kind: 'done' }
}

/** The contract executed actions of another operator, or a fork rolled some back. */
function adoptActionId(draft: Draft, { marketId, actionId, hasOpen }: AdoptActionId): LaneAnswer {
  const { state } = draft
  const isInFlight = pendingActions(state, marketId).some(({ action_id }) => action_id !== null)
  const { lastActionId } = state.progress.need(marketId)
  if (lastActionId === actionId || isInFlight || hasOpen) return { kind: 'adopted', replaced: null }
  draft.write(marketId, { kind: 'action_id_adopted', action_id: actionId })
  return { kind: 'adopted', replaced: lastActionId }
}

function signedHashes(state: ExchangeState, { relayer, nonces }: SignedHashes): LaneAnswer {
  const hashes: string[] = []
  for (const nonce of nonces)
    for (let attempt = 1; ; attempt++) {
      const transaction = state.transactions.get(keyOfTransaction({ relayer, nonce, attempt }))
      if (transaction === undefined) break
      hashes.push(transaction.tx_hash)
    }
  return { kind: 'hashes', hashes }
}

/** Refused if the market has a queued action, or a row that the worker has not seen. */
function noteIdle(state: ExchangeState, { marketId, version }: LaneIdle): LaneAnswer {
  const head = state.heads.get(marketId)?.seq ?? 0
  const isIdle = version === head && firstQueued(state, marketId) === undefined
  return isIdle ? { kind: 'done' } : { kind: 'busy', version: head }
}
