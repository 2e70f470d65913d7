/**
 * Adapters for ethers wallets, viem accounts, and browser wallets (EIP-1193). Each is recognised by its properties.
 */
import { toHex } from '../../domain/hex.ts'
import type { Signer } from './signer.ts'

/** An ethers 6 wallet or signer. Signers with only an asynchronous `getAddress` have no `address`. */
export interface EthersSigner {
  readonly address?: string
  readonly provider?: unknown
  signMessage(message: string | Uint8Array): Promise<string>
  // biome-ignore lint/suspicious/noExplicitAny: the parameters of ethers are wider than those passed here.
  signTypedData?(domain: any, types: any, message: any): Promise<string>
  sendTransaction?(transaction: { to: string; data: string }): Promise<{ readonly hash: string }>
}

/** A local viem account, or the account of a viem wallet client. */
export interface ViemAccount {
  readonly address: string
  readonly type: string
  signMessage(parameters: { message: string | { raw: `0x${string}` } }): Promise<string>
  // biome-ignore lint/suspicious/noExplicitAny: the parameters of viem are generic over the typed data.
  signTypedData(parameters: any): Promise<string>
  // biome-ignore lint/suspicious/noExplicitAny: the parameters of viem are generic over the transaction.
  signTransaction(parameters: any): Promise<string>
}

/** A wallet in a browser. */
export interface WalletProvider {
  request(call: { method: string; params: readonly unknown[] }): Promise<unknown>
}

export type SignerLike = Signer | EthersSigner | ViemAccount

export function toSigner(signer: SignerLike): Signer {
  if ('signDigest' in signer) return signer
  if (typeof signer.signMessage !== 'function')
    throw new TypeError(
      'expected a Signer, an ethers wallet or a viem account: an object with signDigest or signMessage',
    )
  // viem accounts have a `type`; ethers wallets do not.
  return 'type' in signer ? viemSigner(signer) : ethersSigner(signer)
}

export const ethersSigner = (wallet: EthersSigner, address = wallet.address): Signer => ({
  get address(): string {
    return address ?? missingAddress()
  },
  signDigest: (digest) => wallet.signMessage(digest),
  signMessage: (text) => wallet.signMessage(text),
  ...(wallet.signTypedData === undefined
    ? {}
    : {
        signTypedData: ({ domain, types, message }) =>
          (wallet.signTypedData as NonNullable<EthersSigner['signTypedData']>)(domain, types, message),
      }),
  ...(wallet.provider && wallet.sendTransaction !== undefined
    ? {
        sendTransaction: async ({ to, data }) =>
          (await (wallet.sendTransaction as NonNullable<EthersSigner['sendTransaction']>)({ to, data })).hash,
      }
    : {}),
})

const missingAddress = (): never => {
  throw new TypeError(
    'this signer of ethers has no address property: pass its address as ethersSigner(signer, address)',
  )
}

export const viemSigner = (account: ViemAccount): Signer => ({
  address: account.address,
  signDigest: (digest) => account.signMessage({ message: { raw: toHex(digest) } }),
  signMessage: (message) => account.signMessage({ message }),
  signTypedData: (typed) => account.signTypedData(typed),
  signTransaction: (transaction) => account.signTransaction({ type: 'eip1559', ...transaction }),
})

/** A signer that prompts the wallet's user for each signature. */
export function providerSigner(provider: WalletProvider, address: string): Signer {
  const ask = async (method: string, ...params: readonly unknown[]): Promise<string> =>
    String(await provider.request({ method, params }))
  return {
    address,
    signDigest: (digest) => ask('personal_sign', toHex(digest), address),
    signMessage: (text) => ask('personal_sign', toHex(new TextEncoder().encode(text)), address),
    signTypedData: ({ domain, types, primaryType, message }) =>
      ask('eth_signTypedData_v4', address, typedDataJson({ domain, types, primaryType, message })),
    sendTransaction: ({ chainId, to, data }) =>
      ask('eth_sendTransaction', { from: address, chainId: `0x${chainId.toString(16)}`, to, data }),
  }
}

const DOMAIN_TYPE = [
  { name: 'name', type: 'string' },
  { name: 'version', type: 'string' },
  { name: 'chainId', type: 'uint256' },
  { name: 'verifyingContract', type: 'address' },
]

function typedDataJson(typed: {
  readonly types: Readonly<Record<string, unknown>>
  readonly [more: string]: unknown
}) {
  const complete = { ...typed, types: { EIP712Domain: DOMAIN_TYPE, ...typed.types } }
  return JSON.stringify(complete, (_, value) => (typeof value === 'bigint' ? value.toString() : value))
}
