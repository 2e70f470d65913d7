/** The block in which an owner revokes a session key. */
import type { Address } from '../../../domain/units.ts'
import type { MarketFixture } from './market-fixture.ts'
import { applyBlock, nextBlock } from './mine-part.ts'

export async function revokeKey(fixture: MarketFixture, owner: Address, key: Address): Promise<void> {
  const change = { revoked_at: Math.floor(fixture.clock.value / 1000) }
  const fact = { kind: 'session_key_updated', owner, key, change } as const
  await applyBlock(fixture, nextBlock(fixture, fact, '0x'))
}
