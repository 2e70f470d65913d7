/** Applies rows of the accounts shard: users, bank ledger, session keys, forwarder nonces and relays. */
import { invariant } from '../../invariant.ts'
import type {
  AccountsRow,
  BalanceChanged,
  ForwardRequestExecuted,
  RelayChanged,
  SessionKeyChanged,
  UserCreated,
} from '../../journal/accounts-row.ts'
import type { Address, Millis, Quote, Seq, UserId } from '../../units.ts'
import type { ExchangeState } from '../state.ts'
import { keyOfSessionKey } from '../tables/chain.ts'
import { addFunds } from './change.ts'
import { SWITCH_HANDLERS } from './switches.ts'

type Handlers = {
  readonly [Kind in AccountsRow['kind']]: (
    state: ExchangeState,
    row: Extract<AccountsRow, { readonly kind: Kind }>,
    seq: Seq,
  ) => void
}

const HANDLERS: Handlers = {
  user_created: createUser,
  balance_changed: changeBalance,
  session_key_changed: changeSessionKey,
  bank_pause_changed: (state, { rollback, before, ends_at }) =>
    state.bank.put({ pause_ends_at: rollback ? before : ends_at }),
  forward_request_executed: executeForward,
  relay_changed: changeRelay,
  command_spanned: () => {},
  request_completed: (state, { kind: _, ...request }, seq) => state.requests.put({ ...request, seq }),
  requests_released(state, { up_to }) {
    for (const key of state.requestOrder.upTo(up_to)) state.requests.remove(key)
  },
  ...SWITCH_HANDLERS,
}

export function applyAccountsRow(state: ExchangeState, seq: Seq, row: AccountsRow): void {
  const handle = HANDLERS[row.kind] as
    | ((state: ExchangeState, row: AccountsRow, seq: Seq) => void)
    | undefined
  invariant(handle !== undefined, `a row of the accounts has a known kind, received ${row.kind}`)
  handle(state, row, seq)
}

function createUser(state: ExchangeState, { user_id, address, at }: UserCreated): void {
  const userId = user_id as UserId
  invariant(!state.users.has(userId), `a user is created once, received ${userId}`)
  state.users.put({ userId, address: address as Address, createdAt: at as Millis })
  state.accounts.put({ userId, free: 0n as Quote, pendingWithdrawal: 0n as Quote, reserved: 0n as Quote })
}

function changeBalance(state: ExchangeState, row: BalanceChanged): void {
  const sign = row.rollback ? -1n : 1n
  addFunds(state, row.user_id, {
    free: sign * BigInt(row.free_delta),
    pendingWithdrawal: sign * BigInt(row.pending_withdrawal_delta),
  })
}

/** In a rollback row, `after` is the state before the change. */
function changeSessionKey(state: ExchangeState, { owner, key, after, block }: SessionKeyChanged): void {
  if (after === null) state.sessionKeys.remove(keyOfSessionKey({ owner, key }))
  else state.sessionKeys.put({ owner, key, ...after, block })
}

function executeForward(state: ExchangeState, row: ForwardRequestExecuted): void {
  const next_nonce = row.rollback ? row.before : row.nonce + 1
  if (next_nonce === 0) state.forwarderNonces.remove(row.signer)
  else state.forwarderNonces.put({ signer: row.signer, next_nonce, block: row.block })
}

function changeRelay(state: ExchangeState, row: RelayChanged): void {
  const { operation_id, user_id, operation, session_key, market_id, status, failure, tx_hash, at } = row
  const { reason = null, relayer = null, relayer_nonce = null, block = null, request } = row
  const before = state.relays.get(operation_id)
  const signed = request ?? before
  invariant(signed !== undefined, 'the first row of a relay operation has its request')
  const { owner, target, gas, nonce, deadline, data, signature, minimum } = signed
  state.relays.put({
    operation_id,
    user_id,
    kind: operation,
    session_key,
    market_id,
    owner,
    target,
    gas,
    nonce,
    deadline,
    data,
    signature,
    minimum,
    status,
    failure,
    reason,
    relayer,
    relayer_nonce,
    tx_hash,
    block,
    created_at: before?.created_at ?? at,
    updated_at: at,
  })
}
