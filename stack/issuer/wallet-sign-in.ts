/** Wallet sign-in: writes the text of EIP-4361 that a wallet signs, and checks what it signed. Each text is valid once. */
import { createEthersConfig, generateNonce, SiweMessage } from '@signinwithethereum/siwe'
import { JsonRpcProvider } from 'ethers'

export interface SignInTerms {
  readonly issuerUrl: string
  readonly chainId: number
  /** For contract wallets (EIP-1271). */
  readonly rpcUrl: string
}

/** The request is wrong; the message says how. */
export class SignInError extends Error {
  readonly code: string

  constructor(code: string, message: string) {
    super(message)
    this.code = code
  }
}

export interface WalletSignIn {
  /** The text for the wallet in this interaction. It replaces an earlier one. */
  textFor(interaction: string, address: string): string
  /** The address that signed, in lower case. Throws a SignInError. */
  verify(interaction: string, message: string, signature: string): Promise<string>
}

const LIFE_MS = 5 * 60_000
/** Texts that wait for a signature, at most. The oldest are dropped first. */
const MAX_OPEN = 1_000

export async function createWalletSignIn({ issuerUrl, chainId, rpcUrl }: SignInTerms): Promise<WalletSignIn> {
  const provider = new JsonRpcProvider(rpcUrl, chainId, { staticNetwork: true })
  const config = await createEthersConfig(provider)
  const domain = new URL(issuerUrl).host
  const open = new Map<string, string>()
  return {
    textFor(interaction, address) {
      if (!/^0x[0-9a-fA-F]{40}$/.test(address))
        throw new SignInError('ADDRESS_INVALID', 'address must be 0x and 40 hex digits')
      const nonce = generateNonce()
      open.delete(interaction)
      if (open.size >= MAX_OPEN) open.delete(open.keys().next().value as string)
      open.set(interaction, nonce)
      const now = Date.now()
      return new SiweMessage({
        ...{ domain, uri: issuerUrl, version: '1', chainId, nonce, requestId: interaction },
        // Given an address in lower case, the package writes the checksummed form.
        address: address.toLowerCase(),
        statement: 'Sign in to Clearbatch on this machine. This signature moves no funds.',
        issuedAt: new Date(now).toISOString(),
        expirationTime: new Date(now + LIFE_MS).toISOString(),
      }).prepareMessage()
    },
    async verify(interaction, message, signature) {
      const nonce = open.get(interaction)
      // Before the check: a text is used up by its first signature, valid or not.
      open.delete(interaction)
      if (nonce === undefined)
        throw new SignInError('MESSAGE_UNKNOWN', 'there is no open message; request another one')
      const parsed = parse(message)
      const expected = { domain, uri: issuerUrl, chainId, requestId: interaction, nonce, signature }
      const { success, error } = await parsed.verify(expected, {
        ...{ config, strict: true, suppressExceptions: true },
      })
      if (!success)
        throw new SignInError('SIGNATURE_REFUSED', String(error?.type ?? 'the signature is not valid'))
      return parsed.address.toLowerCase()
    },
  }
}

function parse(message: string): SiweMessage {
  try {
    return new SiweMessage(message)
  } catch {
    throw new SignInError('MESSAGE_INVALID', 'message must be the text that was requested, unchanged')
  }
}
