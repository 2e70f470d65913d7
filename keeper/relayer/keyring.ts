/** The relayer key of each lane. The keys come from the environment; an operator may choose among them while the keeper runs. */

import type { Address } from '../../domain/units.ts'
import type { KeySource } from '../../service/keys/key-source.ts'
import type { Signer } from '../ports.ts'
import type { RelayerLane } from './ports.ts'

/** A lane with the key that it signs with. */
export interface Relayer {
  readonly signer: Signer
  readonly lane: RelayerLane
}

export interface KeyringPorts {
  /** Keys by lane, the present key first. Read again on each call, so that a key can be added while the keeper runs. */
  readonly relayerKeys: () => ReadonlyMap<string, readonly KeySource[]>
  readonly chainId: number
  readonly createSigner: (chainId: number, key: KeySource) => Signer
  /** The address that an operator has chosen for the lane; null if none. */
  readonly chosen: (lane: string) => Promise<Address | null>
}

export interface Keyring {
  /** The lanes that this process runs or may take over. */
  lanes(): readonly string[]
  /** Adds the lane to `lanes`. Throws if it has no key. */
  require(lane: string): void
  /** The chosen key if the keeper has it, otherwise the first key. Throws if the lane has no key. */
  present(lane: string): Promise<Relayer>
  /** The signer of another key of the lane; null if the keeper does not have it. */
  formerSigner(lane: string, relayer: Address): Signer | null
}

export function createKeyring({ relayerKeys, chainId, createSigner, chosen }: KeyringPorts): Keyring {
  const lanes = new Set<string>()
  const signers = new Map<KeySource, Signer>()

  function signerOf(key: KeySource): Signer {
    const known = signers.get(key) ?? createSigner(chainId, key)
    signers.set(key, known)
    return known
  }

  function keysOf(lane: string): readonly KeySource[] {
    const keys = relayerKeys().get(lane)
    if (keys === undefined)
      throw new Error(`no relayer key for lane ${lane}: add it to RELAYER_KEYS_FILE or RELAYER_KEYS`)
    return keys
  }

  return {
    lanes: () => [...lanes],
    require(lane) {
      keysOf(lane)
      lanes.add(lane)
    },
    async present(name) {
      const own = keysOf(name).map(signerOf)
      const choice = await chosen(name)
      const signer = own.find(({ address }) => address === choice) ?? (own[0] as Signer)
      return { signer, lane: { name, relayer: signer.address, chainId } }
    },
    formerSigner: (lane, relayer) =>
      (relayerKeys().get(lane) ?? []).map(signerOf).find(({ address }) => address === relayer) ?? null,
  }
}
