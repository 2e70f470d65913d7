/** Accounts whose private keys are public: those that anvil and Hardhat print, which the example files name. */
import { HDNodeWallet, Mnemonic } from 'ethers'

const PHRASE = 'test test test test test test test test test test test junk'
const COUNT = 20
/** Chains on which the examples run, and on which the contracts accept delays of 0: `DelayBoundsLib.isTestChain`. */
export const TEST_CHAINS: readonly bigint[] = [6343n, 31_337n]

let known: ReadonlySet<string> | undefined

function accounts(): ReadonlySet<string> {
  const parent = HDNodeWallet.fromMnemonic(Mnemonic.fromPhrase(PHRASE), "m/44'/60'/0'/0")
  return new Set(Array.from({ length: COUNT }, (_, index) => parent.deriveChild(index).address.toLowerCase()))
}

/** True if any account could sign as this one on a chain with money. */
export function isKeyPublic(address: string, chainId: bigint): boolean {
  if (TEST_CHAINS.includes(chainId)) return false
  known ??= accounts()
  return known.has(address.toLowerCase())
}
