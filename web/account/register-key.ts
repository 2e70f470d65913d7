/** Registers and revokes session keys: the owner's wallet signs a request, which the exchange relays and pays for. */
import {
  type KeyOperation,
  type PreparedOperation,
  type SessionKeyList,
  type SessionKeyOperation,
  SessionKeys,
} from '../../client/session-keys.ts'
import { providerSigner } from '../../client/signers/adapters.ts'
import { config } from '../base/config.ts'
import { marketData } from '../feed/exchange.ts'
import { requireTrader } from './trader.ts'
import { ownerWallet, requireChain } from './wallet.ts'

/** A request decoded from its data, which a wallet shows as opaque bytes. */
export interface DecodedRequest {
  readonly operation: KeyOperation
  readonly key: string
  readonly permissions: readonly string[]
  readonly contract: string
  readonly validUntil: string
}

const PERMISSIONS = ['place and cancel orders', 'change margin and leverage']
const WORD = 64

/** The client checks before it signs that the data is exactly this operation with this key. */
export function decodeRequest({ data, to, deadline, operation }: PreparedOperation): DecodedRequest {
  const words = data.slice(10)
  const bits = operation === 'register' ? Number(BigInt(`0x${words.slice(WORD, 2 * WORD)}`)) : 0
  return {
    operation,
    key: `0x${words.slice(WORD - 40, WORD)}`,
    permissions: PERMISSIONS.filter((_, index) => (bits & (1 << index)) !== 0),
    contract: to,
    validUntil: new Date(deadline * 1000).toISOString(),
  }
}

const keysWith = (signer: ConstructorParameters<typeof SessionKeys>[0]['signer']): SessionKeys =>
  new SessionKeys({ http: requireTrader().http, marketData, signer })

export const prepareRequest = (operation: KeyOperation, key: string): Promise<PreparedOperation> =>
  keysWith(null).prepare(operation, key)

/** Returns once the chain has executed the request. Throws if it fails. */
export async function signAndRelay(prepared: PreparedOperation): Promise<SessionKeyOperation> {
  const wallet = await ownerWallet()
  await requireChain(wallet, prepared.chain_id, config.rpcUrls)
  const keys = keysWith(providerSigner(wallet.provider, wallet.address))
  const ended = await keys.waitFor(await keys.relay(await keys.sign(prepared)))
  if (ended.status === 'CONFIRMED') return ended
  const reason = [ended.failure, ended.failure_reason].filter(Boolean).join(', ')
  throw new Error(`the request failed (${reason}); nothing has changed on the chain`)
}

export const listKeys = (): Promise<SessionKeyList> => keysWith(null).list({ limit: 50 })
