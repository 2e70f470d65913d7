/** Registers and revokes session keys: the owner's wallet signs a forward request, which the exchange relays and pays for. */
import { keccak_256 } from '@noble/hashes/sha3.js'
import { utf8ToBytes } from '@noble/hashes/utils.js'
import type { HttpSession } from '../../client/http-session.ts'
import type {
  KeyOperation,
  PreparedOperation,
  SessionKeyList,
  SessionKeyOperation,
} from '../../client/session-keys.ts'
import { waitFor } from '../../client/wait-for.ts'
import { toHex } from '../../domain/hex.ts'
import { config } from '../base/config.ts'
import { marketData } from '../feed/exchange.ts'
import { ownerWallet, requireChain } from './wallet.ts'

/** A request decoded from its data, which a wallet shows as opaque bytes. */
export interface DecodedRequest {
  readonly operation: KeyOperation
  readonly key: string
  readonly permissions: readonly string[]
  readonly contract: string
  readonly validUntil: string
}

const selector = (signature: string): string => toHex(keccak_256(utf8ToBytes(signature))).slice(0, 10)
const REGISTER = selector('registerSessionKey(address,uint8)')
const REVOKE = selector('revokeSessionKey(address)')
const PERMISSIONS = ['place and cancel orders', 'change margin and leverage']

/** Throws if the request would do anything else than what was asked for: then nothing is signed. */
export async function decodeRequest(
  prepared: PreparedOperation,
  operation: KeyOperation,
  key: string,
): Promise<DecodedRequest> {
  const { addressAccountManager, addressForwarder } = await marketData.contracts()
  const { data, to, deadline } = prepared
  const words = data.slice(10)
  const address = `0x${words.slice(24, 64)}`.toLowerCase()
  const bits = operation === 'register' ? Number(BigInt(`0x${words.slice(64, 128) || '0'}`)) : 0
  const isExpected =
    data.slice(0, 10) === (operation === 'register' ? REGISTER : REVOKE) &&
    words.length === (operation === 'register' ? 128 : 64) &&
    address === key.toLowerCase() &&
    to.toLowerCase() === addressAccountManager.toLowerCase() &&
    prepared.forwarder_address.toLowerCase() === addressForwarder.toLowerCase()
  if (!isExpected)
    throw new Error(`the exchange prepared another request than to ${operation} ${key}: nothing is signed`)
  return {
    operation,
    key,
    permissions: PERMISSIONS.filter((_, index) => (bits & (1 << index)) !== 0),
    contract: to,
    validUntil: new Date(deadline * 1000).toISOString(),
  }
}

export const prepare = (
  http: HttpSession,
  operation: KeyOperation,
  key: string,
): Promise<PreparedOperation> =>
  http.post('/v0/session-keys/prepare', { session_public_address: key, operation })

const field = (name: string, type: string) => ({ name, type })

const TYPES = {
  EIP712Domain: [
    field('name', 'string'),
    field('version', 'string'),
    field('chainId', 'uint256'),
    field('verifyingContract', 'address'),
  ],
  ForwardRequest: [
    field('from', 'address'),
    field('to', 'address'),
    field('value', 'uint256'),
    field('gas', 'uint256'),
    field('nonce', 'uint256'),
    field('deadline', 'uint48'),
    field('data', 'bytes'),
  ],
}

async function signRequest({
  from,
  to,
  gas,
  nonce,
  deadline,
  data,
  ...domain
}: PreparedOperation): Promise<string> {
  const owner = await ownerWallet()
  await requireChain(owner, domain.chain_id, config.rpcUrls)
  const typed = {
    types: TYPES,
    primaryType: 'ForwardRequest',
    domain: {
      name: 'Forwarder',
      version: '1',
      chainId: domain.chain_id,
      verifyingContract: domain.forwarder_address,
    },
    message: {
      from,
      to,
      value: '0',
      gas: String(gas),
      nonce: String(nonce),
      deadline: String(deadline),
      data,
    },
  }
  const params = [owner.address, JSON.stringify(typed)]
  return (await owner.provider.request({ method: 'eth_signTypedData_v4', params })) as string
}

/** Returns once the chain has executed the request. Throws if it fails. */
export async function signAndRelay(
  http: HttpSession,
  prepared: PreparedOperation,
): Promise<SessionKeyOperation> {
  const {
    from,
    to,
    gas,
    nonce,
    deadline,
    data,
    operation,
    operation_id,
    session_public_address,
    session_key_id,
  } = prepared
  const relayed = await http.post<SessionKeyOperation>('/v0/session-keys/relay', {
    from,
    to,
    gas,
    nonce,
    deadline,
    data,
    operation_id,
    session_public_address,
    session_key_id,
    approved: operation === 'register',
    signature: await signRequest(prepared),
  })
  const ended = await waitFor(
    () => http.get<SessionKeyOperation>(`/v0/session-keys/operations/${relayed.operation_id}`),
    ({ status }) => status === 'CONFIRMED' || status === 'FAILED',
    { budgetMs: 60_000, everyMs: 250 },
  )
  if (ended.status === 'CONFIRMED') return ended
  throw new Error(
    `the request failed: ${ended.failure ?? ''} ${ended.failure_reason ?? ''}; nothing has changed on the chain`,
  )
}

export const listKeys = (http: HttpSession): Promise<SessionKeyList> =>
  http.get('/v0/session-keys', { limit: 50 })
