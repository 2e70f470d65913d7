/** Signed forward requests against a real api, and the events of the chain as the indexer stores them. */
import { Wallet } from 'ethers'
import { after, before } from 'mocha'
import { seizeLease } from '../../../db/leases.ts'
import { RELAY_LANE } from '../../../db/relayers.ts'
import { endedRelay, type RelayEnd } from '../../../domain/relays/stored-relay.ts'
import { signForward, type TypedRequest } from '../../support/forward-request.ts'
import { saveForwarderNonce } from '../../support/rows/forwarder-nonces.ts'
import { saveMarginNonceFloor } from '../../support/rows/margin-nonce-floors.ts'
import { changeRelay } from '../../support/rows/relay-operations.ts'
import { saveSessionKey } from '../../support/rows/session-keys.ts'
import {
  type Answer,
  createUser,
  type Env,
  type ExchangeFixture,
  startExchange,
  type User,
} from './exchange-fixture.ts'

export const MANAGER = `0x${'cc'.repeat(20)}`
export const FORWARDER = `0x${'dd'.repeat(20)}`
export const DAY = 86_400
export const nowSeconds = (): number => Math.floor(Date.now() / 1000)

export const freshKey = (): Wallet => new Wallet(Wallet.createRandom().privateKey)
export const addressOf = ({ address }: Wallet): string => address.toLowerCase()

export class ForwardFixture {
  readonly exchange: ExchangeFixture

  constructor(exchange: ExchangeFixture) {
    this.exchange = exchange
  }

  /** As a keeper does that runs the relayer lane. It ends when `lifeMs` is over. */
  openLane(lifeMs = 3_600_000): Promise<void> {
    return seizeLease(this.exchange.db, { name: RELAY_LANE, owner: 'keeper', now: Date.now(), lifeMs })
  }

  prepare(user: User, key: Wallet, operation = 'register'): Promise<Answer> {
    const body = { session_public_address: key.address, operation }
    return this.exchange.send(user, 'POST', '/v0/session-keys/prepare', body)
  }

  /** The body of a relay: the prepared request with changes, signed by the owner or another wallet. */
  async body(
    user: User,
    key: Wallet,
    {
      operation = 'register',
      signer = user.wallet,
      ...changes
    }: { operation?: string; signer?: Wallet } & Partial<TypedRequest> = {},
  ): Promise<Record<string, unknown>> {
    const { body: prepared } = await this.prepare(user, key, operation)
    const { from, to, gas, nonce, deadline, data } = prepared
    const request = { ...{ from, to, value: 0, gas, nonce, deadline, data }, ...changes }
    const { value: _, ...sent } = request
    return {
      ...sent,
      signature: await signForward(signer, request, FORWARDER),
      session_public_address: key.address,
      approved: operation === 'register',
      ...(operation === 'revoke' && { session_key_id: prepared.session_key_id }),
    }
  }

  relay(user: User, body: unknown): Promise<Answer> {
    return this.exchange.send(user, 'POST', '/v0/session-keys/relay', body)
  }

  operation(id: string) {
    return this.exchange.db
      .selectFrom('relay_operations')
      .selectAll()
      .where('operation_id', '=', id)
      .executeTakeFirstOrThrow()
  }

  /** The forwarder has executed the operation's nonce. `end`: another request used it. */
  async execute(id: string, end: RelayEnd | null = null): Promise<void> {
    const operation = await this.operation(id)
    const { owner, session_key: key, nonce } = operation
    const at = nowSeconds()
    await this.exchange.db.transaction().execute(async (tx) => {
      await saveForwarderNonce(tx, owner, nonce + 1, 7)
      if (end === null && operation.kind === 'invalidate_margin_nonces')
        await saveMarginNonceFloor(
          tx,
          { marketId: operation.market_id as number, account: owner },
          operation.minimum as bigint,
          7,
        )
      else if (end === null)
        await saveSessionKey(
          tx,
          { owner, key: key as string },
          {
            ...{ permissions: 3, registered_at: at, expires_at: at + 30 * DAY },
            revoked_at: operation.kind === 'revoke_session_key' ? at : null,
          },
          7,
        )
      await changeRelay(
        tx,
        operation,
        endedRelay({ block: 7, tx_hash: `0x${'ab'.repeat(32)}`, at: Date.now() }, end),
      )
    })
  }

  /** A key as the indexer stores it. */
  async store(
    user: User,
    key: Wallet,
    changes: { permissions?: number; expires_at?: number; revoked_at?: number | null } = {},
  ): Promise<void> {
    const at = nowSeconds()
    const state = {
      permissions: 3,
      registered_at: at,
      expires_at: at + 30 * DAY,
      revoked_at: null,
      ...changes,
    }
    await this.exchange.db
      .transaction()
      .execute((tx) => saveSessionKey(tx, { owner: user.address, key: addressOf(key) }, state, 1))
  }
}

export interface Forwarding {
  readonly exchange: ExchangeFixture
  readonly forward: ForwardFixture
  newUser(): Promise<User>
}

/** An exchange for one test file. With `isOpen` a relayer runs the lane from the start. */
export function useForwardFixture(env: Env = {}, { isOpen = true } = {}): Forwarding {
  let forward: ForwardFixture
  let users = 0
  before(async () => {
    forward = new ForwardFixture(await startExchange(env))
    if (isOpen) await forward.openLane()
  })
  after(() => forward.exchange.stop())
  return {
    get exchange() {
      return forward.exchange
    },
    get forward() {
      return forward
    },
    newUser: () => createUser(forward.exchange.db, `forwarding ${++users}`),
  }
}
