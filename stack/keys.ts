/** Every key of the local stack, derived from one phrase that is generated with the data directory and stored in it. */
import { HDNodeWallet, Mnemonic, randomBytes } from 'ethers'
import { type DataDir, exists, readJson, writePrivate } from './data-dir.ts'
import { StackError } from './options.ts'

export interface Key {
  readonly address: string
  readonly privateKey: string
}

export interface Keys {
  readonly phrase: string
  /** Deploys the contracts and has every role that no key below has. */
  readonly deployer: Key
  readonly faucet: Key
  /** Sends the heartbeats of all markets. */
  readonly heartbeat: Key
  /** Executes the adjustments of all markets. */
  readonly adjust: Key
  /** Ends markets and pays their accounts out. */
  readonly ending: Key
  /** Relays owners' requests. */
  readonly relay: Key
  readonly oracle: Key
  /** Signers of a cluster, each a process of its own. */
  oracleSigner(number: number): Key
  /** Session keys of the backstop, one after another: each expires after 30 days. */
  backstop(number: number): Key
  /** The relayer of a market. */
  relayer(marketId: number): Key
  account(index: number): Key
  /** Accounts of the demo traders. */
  bot(index: number): Key
  /** Accounts of a replay. Each market has its own, so that replays of several markets may run at the same time. */
  replay(marketId: number, index: number): Key
}

/** The first index of each role's keys below m/44'/60'/0'/0. */
const AT = {
  deployer: 0,
  faucet: 1,
  oracle: 2,
  oracleSigners: 10,
  heartbeat: 3,
  backstop: 50,
  ending: 4,
  relay: 5,
  adjust: 6,
  relayers: 100,
  accounts: 1_000,
  bots: 2_000,
  replay: 10_000,
} as const

const FRESH = 'restore it, or start again with --fresh'

export function loadKeys(dir: DataDir): Keys {
  const stored = readJson<{ phrase: string }>(dir.keys, ({ phrase }) => Mnemonic.isValidMnemonic(phrase))
  if (stored !== null) return keysOf(stored.phrase)
  // New keys have no role in contracts that were deployed with other keys.
  if (exists(dir.deployment, FRESH))
    throw new StackError(
      `${dir.keys} is missing, so the contracts of ${dir.deployment} have no owner: ${FRESH}`,
    )
  const phrase = Mnemonic.fromEntropy(randomBytes(16)).phrase
  writePrivate(dir.keys, { phrase })
  return keysOf(phrase)
}

export function keysOf(phrase: string): Keys {
  const root = HDNodeWallet.fromMnemonic(Mnemonic.fromPhrase(phrase), "m/44'/60'/0'/0")
  const cache = new Map<number, Key>()
  const key = (index: number): Key => {
    const cached = cache.get(index)
    if (cached !== undefined) return cached
    const { address, privateKey } = root.deriveChild(index)
    const derived = { address: address.toLowerCase(), privateKey }
    cache.set(index, derived)
    return derived
  }
  return {
    phrase,
    deployer: key(AT.deployer),
    faucet: key(AT.faucet),
    oracle: key(AT.oracle),
    heartbeat: key(AT.heartbeat),
    ending: key(AT.ending),
    relay: key(AT.relay),
    adjust: key(AT.adjust),
    oracleSigner: (number) => key(AT.oracleSigners + number),
    backstop: (number) => key(AT.backstop + number),
    relayer: (marketId) => key(AT.relayers + marketId),
    account: (index) => key(AT.accounts + index),
    bot: (index) => key(AT.bots + index),
    replay: (marketId, index) => key(AT.replay + 1_000 * marketId + index),
  }
}
