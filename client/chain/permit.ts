/** Permits of the collateral token (EIP-2612): a signature instead of an approval. */
import { toHex } from '../../domain/hex.ts'
import type { Signer } from '../signers/signer.ts'
import { hashDomain, type TypedDomain } from '../typed-data.ts'
import { decodeText, encodeCall } from './calls.ts'
import { type Rpc, RpcError } from './rpc.ts'

export interface Permit {
  readonly deadline: number
  readonly v: number
  readonly r: string
  readonly s: string
}

export interface PermitTerms {
  readonly token: string
  readonly spender: string
  readonly value: bigint
  readonly chainId: number
}

const LIFE_S = 600
const TYPES = {
  Permit: [
    { name: 'owner', type: 'address' },
    { name: 'spender', type: 'address' },
    { name: 'value', type: 'uint256' },
    { name: 'nonce', type: 'uint256' },
    { name: 'deadline', type: 'uint256' },
  ],
}
/** Code prefix of an account that delegates (EIP-7702) and still signs with its own key. */
const DELEGATION = '0xef0100'

/** Whether a contract verifies the account's signatures; a permit does not accept contract signatures. */
export async function isContract(rpc: Rpc, address: string): Promise<boolean> {
  const code = await rpc.call<string>('eth_getCode', address, 'latest')
  return code !== '0x' && !code.startsWith(DELEGATION)
}

/** The permit; null if the token has none, if its domain is unknown, or if the signer cannot sign it. */
export async function signPermit(rpc: Rpc, signer: Signer, terms: PermitTerms): Promise<Permit | null> {
  const { token, spender, value, chainId } = terms
  if (signer.signTypedData === undefined) return null
  const domain = await domainOf(rpc, token, chainId)
  if (domain === null) return null
  const nonce = BigInt(await rpc.read(token, encodeCall('nonces(address)', signer.address)))
  const deadline = Math.floor(Date.now() / 1000) + LIFE_S
  const message = { owner: signer.address, spender, value, nonce, deadline }
  const signature = await signer.signTypedData({ domain, primaryType: 'Permit', types: TYPES, message })
  return {
    deadline,
    v: Number.parseInt(signature.slice(130, 132), 16),
    r: signature.slice(0, 66),
    s: `0x${signature.slice(66, 130)}`,
  }
}

/** Domain of the token; null unless its separator matches the token's name with version 1. */
async function domainOf(rpc: Rpc, token: string, chainId: number): Promise<TypedDomain | null> {
  try {
    const separator = await rpc.read(token, encodeCall('DOMAIN_SEPARATOR()'))
    const name = decodeText(await rpc.read(token, encodeCall('name()')))
    const domain = { name, version: '1', chainId, verifyingContract: token }
    return toHex(hashDomain(domain)) === separator ? domain : null
  } catch (error) {
    if (error instanceof RpcError) return null
    throw error
  }
}
