/**
 * Session keys of the account, registered and revoked through requests that the owner signs and the exchange submits.
 */
import { missingOption } from './account.ts'
import { encodeCall } from './chain/calls.ts'
import { type ForwarderDomain, type ForwardRequest, signForwardRequest } from './forward-request.ts'
import type { HttpSession } from './http-session.ts'
import type { MarketData } from './market-data.ts'
import type { Page, RangeOptions } from './queries.ts'
import type { Signer } from './signers/signer.ts'
import { type WaitOptions, waitFor } from './wait-for.ts'

export type SessionKeyStatus = 'ACTIVE' | 'EXPIRED' | 'REVOKED'
export type KeyOperation = 'register' | 'revoke'

export interface SessionKey {
  readonly session_key_id: string
  readonly session_public_address: string
  readonly status: SessionKeyStatus
  readonly permissions: readonly ('orders' | 'margin')[]
  readonly registered_at: string
  readonly expires_at: string
  readonly revoked_at: string | null
  /** If true, orders of the key are no longer accepted, regardless of its status. */
  readonly revocation_requested: boolean
  readonly pending_operation_id: string | null
}

export interface SessionKeyOperation {
  /** Digest of the signed request; known before the relay responds. */
  readonly operation_id: string
  readonly operation: KeyOperation
  readonly session_public_address: string
  readonly session_key_id: string
  readonly status: 'QUEUED' | 'RELAYING' | 'CONFIRMED' | 'FAILED'
  readonly failure: 'REVERTED' | 'SUPERSEDED' | 'EXPIRED' | null
  readonly failure_reason: string | null
  readonly nonce: number
  readonly deadline: number
  readonly tx_hash: string | null
  readonly created_at: string
  readonly updated_at: string
}

export type PreparedOperation = ForwardRequest &
  ForwarderDomain & {
    /** Always 0. */
    readonly value: number
    readonly account_manager_address: string
    readonly operation: KeyOperation
    readonly session_public_address: string
    readonly session_key_id: string
    readonly operation_id: string
  }

/** A signed request. Persist it before sending; sending it again returns the same operation. */
export type SignedOperation = ForwardRequest & {
  readonly operation_id: string
  readonly signature: string
  readonly session_public_address: string
  readonly approved: boolean
  readonly session_key_id: string
}

export interface SessionKeyList extends Page {
  readonly session_keys: readonly SessionKey[]
  /** Operations in progress, including keys that are not on chain yet. */
  readonly pending_operations: readonly SessionKeyOperation[]
}

/** Permissions for orders, and for margin and leverage changes. */
const ALL_PERMISSIONS = 3

const calldataOf = (operation: KeyOperation, address: string): string =>
  operation === 'register'
    ? encodeCall('registerSessionKey(address,uint8)', address, ALL_PERMISSIONS)
    : encodeCall('revokeSessionKey(address)', address)

export interface SessionKeysOptions {
  readonly http: HttpSession
  readonly marketData: Pick<MarketData, 'contracts'>
  /** Signer of the account itself; null if there is none. */
  readonly signer: Signer | null
}

export class SessionKeys {
  readonly #options: SessionKeysOptions

  constructor(options: SessionKeysOptions) {
    this.#options = options
  }

  /** Registers the key and returns once the chain has it. Throws if the operation fails. */
  async register(address: string, options: WaitOptions = {}): Promise<SessionKeyOperation> {
    return this.#run('register', address, options)
  }

  /**
   * Revokes the key and returns once the revocation is on chain. The exchange accepts no order of the key
   * from the relay on.
   */
  async revoke(address: string, options: WaitOptions = {}): Promise<SessionKeyOperation> {
    return this.#run('revoke', address, options)
  }

  async prepare(operation: KeyOperation, address: string): Promise<PreparedOperation> {
    const body = { session_public_address: address, operation }
    return this.#options.http.post('/v0/session-keys/prepare', body)
  }

  /** Signs a prepared request. Throws if the request differs from the operation with this key. */
  async sign(prepared: PreparedOperation): Promise<SignedOperation> {
    const { signer, marketData } = this.#options
    if (signer === null) return missingOption('privateKey (or signer)')
    const { from, to, gas, nonce, deadline, data, operation, session_public_address, ...ids } = prepared
    const { addressAccountManager } = await marketData.contracts()
    const isExpected =
      to.toLowerCase() === addressAccountManager.toLowerCase() &&
      data.toLowerCase() === calldataOf(operation, session_public_address)
    if (!isExpected)
      throw new Error(
        `the prepared request to ${to} does not ${operation} ${session_public_address}: not signed`,
      )
    const request = { from, to, gas, nonce, deadline, data }
    const { session_key_id, operation_id } = ids
    return {
      ...{ ...request, operation_id, session_public_address, session_key_id },
      approved: operation === 'register',
      signature: await signForwardRequest(signer, request, ids),
    }
  }

  /**
   * Relays a request. It is retried after a lost response, because the same request is the same operation.
   */
  async relay(signed: SignedOperation): Promise<SessionKeyOperation> {
    return this.#options.http.post('/v0/session-keys/relay', signed)
  }

  async operation(operationId: string): Promise<SessionKeyOperation> {
    return this.#options.http.get(`/v0/session-keys/operations/${operationId}`)
  }

  /** Returns the operation once it has ended. */
  async waitFor({ operation_id }: { readonly operation_id: string }, options: WaitOptions = {}) {
    return waitFor(
      () => this.operation(operation_id),
      ({ status }) => status === 'CONFIRMED' || status === 'FAILED',
      { budgetMs: 60_000, ...options },
    )
  }

  async list(
    options: Omit<RangeOptions, 'readAfter'> & { readonly status?: SessionKeyStatus } = {},
  ): Promise<SessionKeyList> {
    return this.#options.http.get('/v0/session-keys', options)
  }

  async #run(operation: KeyOperation, address: string, options: WaitOptions): Promise<SessionKeyOperation> {
    const signed = await this.sign(await this.prepare(operation, address))
    const ended = await this.waitFor(await this.relay(signed), options)
    if (ended.status === 'CONFIRMED') return ended
    throw new Error(
      `the operation ${ended.operation_id} failed: ${ended.failure}, ${ended.failure_reason}; nothing has changed on the chain`,
    )
  }
}
