/** Prepares and relays registrations and revocations of session keys, and lists the caller's keys and operations. */
import type { Db } from '../../db/client.ts'
import { findRelayOperation, openRelays } from '../../db/relay-operations.ts'
import { listSessionKeys } from '../../db/session-keys.ts'
import type { Clock } from '../../service/clock.ts'
import type { Config } from '../config.ts'
import { ApiError } from '../errors.ts'
import { callerOf } from '../http/access.ts'
import type { App } from '../http/types.ts'
import { FORWARD_ERRORS } from '../relays/errors.ts'
import { decodeCursor, pageOf } from '../wire/cursor.ts'
import { timeRange } from '../wire/times.ts'
import { KEY_ERRORS } from './errors.ts'
import {
  OperationParams,
  OperationView,
  PrepareBody,
  Prepared,
  RelayBody,
  SessionKeys as SessionKeysAnswer,
  SessionKeysQuery,
} from './schema.ts'
import type { SessionKeys } from './session-keys.ts'
import { keyView, operationView, sessionKeyIdOf } from './view.ts'

export interface SessionKeyRoutePorts {
  readonly sessionKeys: SessionKeys
  readonly db: Db
  readonly clock: Clock
  readonly config: Pick<Config, 'chainId' | 'contracts'>
}

const tags = ['session keys']

export function sessionKeyRoutes(app: App, ports: SessionKeyRoutePorts): void {
  prepareRoute(app, ports)
  relayRoute(app, ports)
  readRoutes(app, ports)
}

function prepareRoute(app: App, { sessionKeys, config }: SessionKeyRoutePorts): void {
  app.post(
    '/v0/session-keys/prepare',
    {
      config: { access: 'user', readOnly: true, errors: [...KEY_ERRORS, 'RELAY_UNAVAILABLE'] },
      schema: {
        tags,
        summary: 'Prepare the registration or revocation of a session key',
        description:
          'The answer is a forward request, which the owner signs as typed data `ForwardRequest` and sends to `relay`. Preparing ' +
          'changes nothing. While the operation is open, or for at least five minutes, the same request is prepared again.',
        operationId: 'prepareSessionKey',
        body: PrepareBody,
        response: { 200: Prepared },
      },
    },
    async (request) => {
      const { session_public_address: address, operation } = request.body
      const caller = callerOf(request)
      const { request: forward, operationId } = await sessionKeys.prepare(caller, address, operation)
      return {
        ...{ ...forward, value: 0, chain_id: config.chainId },
        account_manager_address: config.contracts.accountManager,
        forwarder_address: config.contracts.forwarder,
        ...{ operation, session_public_address: address.toLowerCase() },
        session_key_id: sessionKeyIdOf(caller.userId, address.toLowerCase()),
        operation_id: operationId,
      }
    },
  )
}

function relayRoute(app: App, { sessionKeys }: SessionKeyRoutePorts): void {
  app.post(
    '/v0/session-keys/relay',
    {
      config: { access: 'user', bucket: 'relays', errors: [...FORWARD_ERRORS, ...KEY_ERRORS] },
      schema: {
        tags,
        summary: 'Relay a signed registration or revocation',
        description:
          'The exchange sends the request and pays its gas. The key is active, or revoked, once the operation is CONFIRMED. Sending the ' +
          'same request again answers with the same operation, whatever its status. After the acceptance of a revocation no order of ' +
          'the key is accepted.',
        operationId: 'relaySessionKey',
        body: RelayBody,
        response: { 200: OperationView },
      },
    },
    async (request) => operationView(await sessionKeys.relay(callerOf(request), request.body)),
  )
}

function readRoutes(app: App, { db, clock }: SessionKeyRoutePorts): void {
  app.get(
    '/v0/session-keys',
    {
      config: { access: 'user' },
      schema: {
        tags,
        summary: "List the caller's session keys, the newest registration first",
        operationId: 'listSessionKeys',
        querystring: SessionKeysQuery,
        response: { 200: SessionKeysAnswer },
      },
    },
    async (request) => {
      const { userId, address } = callerOf(request)
      const { status, limit = 100, cursor: text, ...times } = request.query
      const cursor = decodeCursor('session-keys', text)
      const now = clock.now()
      const found = await listSessionKeys(db, address, {
        status: status ?? null,
        now: Math.floor(now / 1000),
        after: cursor && { registeredAt: cursor.at, key: cursor.id },
        limit: limit + 1,
        ...timeRange(times),
      })
      const { page, next_cursor } = pageOf('session-keys', found, limit, ({ registered_at, key }) => ({
        at: registered_at,
        id: key,
      }))
      const pending = (await openRelays(db, address)).filter(({ session_key }) => session_key !== null)
      return {
        session_keys: page.map((key) => keyView(key, userId, { pending, now })),
        pending_operations: pending.map(operationView),
        next_cursor,
      }
    },
  )
  app.get(
    '/v0/session-keys/operations/:operation_id',
    {
      config: { access: 'user', errors: ['OPERATION_NOT_FOUND'] },
      schema: {
        tags,
        summary: 'Get an operation of a session key',
        description: 'Reconciles a relay whose answer was lost. 404 means that the relay was not accepted.',
        operationId: 'getSessionKeyOperation',
        params: OperationParams,
        response: { 200: OperationView },
      },
    },
    async (request) => {
      const received = request.params.operation_id
      const operation = await findRelayOperation(db, received.toLowerCase())
      // An operation of another account is answered as an unknown one.
      if (
        operation === null ||
        operation.session_key === null ||
        operation.user_id !== callerOf(request).userId
      )
        throw new ApiError('OPERATION_NOT_FOUND', { field: 'operation_id', received })
      return operationView(operation)
    },
  )
}
