/** Every key of the local stack, derived from one phrase that is made with the data directory and kept in it. */
import { HDNodeWallet, Mnemonic, randomBytes } from 'ethers'
import { type DataDir, readJson, writePrivate } from './data-dir.ts'

export interface Key {
  readonly address: string
  readonly privateKey: string
}

export interface Keys {
  readonly phrase: string
  /** Deploys, administers, and holds the role of everything that is not named below. */
  readonly deployer: Key
  readonly faucet: Key
  readonly oracle: Key
  lane(marketId: number): Key
  account(index: number): Key
  /** Accounts of the demo traders. */
  bot(index: number): Key
  /** Accounts of recorded order flow, each market its own: replays of different markets may run side by side. */
  replay(marketId: number, index: number): Key
}

/** Where each role's keys begin below m/44'/60'/0'/0. */
const AT = {
  deployer: 0,
  faucet: 1,
  oracle: 2,
  lanes: 100,
  accounts: 1_000,
  bots: 2_000,
  replay: 10_000,
} as const

export function loadKeys(dir: DataDir): Keys {
  const kept = readJson<{ phrase: string }>(dir.keys)
  if (kept !== null) return keysOf(kept.phrase)
  const phrase = Mnemonic.fromEntropy(randomBytes(16)).phrase
  writePrivate(dir.keys, { phrase })
  return keysOf(phrase)
}

export function keysOf(phrase: string): Keys {
  const root = HDNodeWallet.fromMnemonic(Mnemonic.fromPhrase(phrase), "m/44'/60'/0'/0")
  const known = new Map<number, Key>()
  const key = (index: number): Key => {
    const old = known.get(index)
    if (old !== undefined) return old
    const { address, privateKey } = root.deriveChild(index)
    const made = { address: address.toLowerCase(), privateKey }
    known.set(index, made)
    return made
  }
  return {
    phrase,
    deployer: key(AT.deployer),
    faucet: key(AT.faucet),
    oracle: key(AT.oracle),
    lane: (marketId) => key(AT.lanes + marketId),
    account: (index) => key(AT.accounts + index),
    bot: (index) => key(AT.bots + index),
    replay: (marketId, index) => key(AT.replay + 1_000 * marketId + index),
  }
}
