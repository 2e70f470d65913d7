/** A keeper whose relayer keys are in memory, in a keystore and in a remote signer: no action is lost or sent twice while they change places. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { encryptKeystoreJsonSync, Wallet } from 'ethers'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { chooseRelayer } from '../../db/relayers.ts'
import { ACTION_LIFETIME } from '../../domain/settlement/durations.ts'
import type { Address } from '../../domain/units.ts'
import { type SignerServer, startSignerServer } from '../service/support/signer-server.ts'
import { perpetual, rate } from '../support/markets.ts'
import { adjustKey, ChainFixture, laneKey, useChain } from './support/chain-fixture.ts'
import { until } from './support/keeper-process.ts'
import { Keepers } from './support/keepers.ts'

const PASSPHRASE = 'a passphrase that no log may contain'
const FAST = { scrypt: { N: 1024, r: 8, p: 1 } }
/** Both are operators of the market and have gas. */
const [FIRST, SECOND] = [laneKey, adjustKey].map((key) => new Wallet(key).address.toLowerCase()) as [
  Address,
  Address,
]

describe('the key sources of the keeper process', function () {
  this.timeout(120_000)
  const chain = useChain({ ...perpetual, fundingCap: rate('0') })
  let keepers: Keepers
  let fixture: ChainFixture
  let signer: SignerServer
  let folder: string
  const at = (name: string): string => join(folder, name)
  const store = (m1: readonly unknown[]): void => writeFileSync(at('keys.json'), JSON.stringify({ m1 }))

  beforeEach(async () => {
    keepers = await Keepers.on(await ChainFixture.openOn(chain()))
    ;({ fixture } = keepers)
    signer = await startSignerServer([laneKey, adjustKey])
    folder = mkdtempSync(join(tmpdir(), 'clearbatch-sources-'))
    const account = { address: FIRST, privateKey: laneKey }
    writeFileSync(at('keystore.json'), encryptKeystoreJsonSync(account, PASSPHRASE, FAST))
    writeFileSync(at('passphrase'), `${PASSPHRASE}\n`)
  })
  afterEach(async () => {
    await keepers.close()
    await signer.close()
    rmSync(folder, { recursive: true })
  })

  const environment = () => ({
    RELAYER_KEYS: '',
    RELAYER_KEYS_FILE: at('keys.json'),
    KEY_PASSPHRASE_FILE: at('passphrase'),
    REMOTE_SIGNER_URL: signer.url.replace('://', '://keeper:secret-of-the-proxy@'),
    REMOTE_SIGNER_TIMEOUT_MS: '10000',
    MARKET_POLL_MS: '300',
    STUCK_AFTER_MS: '30000',
    LOG_LEVEL: 'trace',
  })
  const choose = (address: Address) => chooseRelayer(fixture.db, { lane: 'm1', address, at: Date.now() })
  const relayers = async () => (await fixture.actions()).map(({ relayer }) => relayer)
  function expectNoSecret(output: string): void {
    for (const secret of [laneKey, adjustKey, PASSPHRASE, 'secret-of-the-proxy'])
      expect(output).to.not.include(secret.replace('0x', ''))
  }

  it('when a lane moves from a plain key to a remote signer and to a keystore, each batch settles once, and a signer that is down changes nothing', async () => {
    store([laneKey, { remote: SECOND }])
    const keeper = await keepers.startReady(environment())
    const logged = (text: string) =>
      until(
        async () => keeper.output.includes(text),
        () => keeper.output,
      )
    let held = 0
    const trade = async (): Promise<void> => {
      await keepers.cross(20)
      held += 20
      await keepers.untilHeld(held, keeper)
    }
    await trade()
    signer.isDown = true
    await choose(SECOND)
    await logged('the lane keeps its present one')
    await trade()
    signer.isDown = false
    await logged(`"to":"${SECOND}","key":"remote signer ${signer.url}"`)
    await trade()
    store([{ keystore: at('keystore.json') }, { remote: SECOND }])
    await choose(FIRST)
    await logged(`"to":"${FIRST}","key":"keystore ${at('keystore.json')}"`)
    await trade()
    // The same key in another place is no rotation, and takes effect all the same.
    store([{ remote: FIRST }, { remote: SECOND }])
    await logged(`"to":"${FIRST}","key":"remote signer ${signer.url}"`)
    await trade()
    expect(await relayers()).to.deep.equal([FIRST, FIRST, SECOND, FIRST, FIRST])
    expect((await fixture.transactions()).map(({ status }) => status)).to.deep.equal(Array(5).fill('MINED'))
    expectNoSecret(keeper.output)
  })

  it('when the remote signer returns signatures of another key, nothing is sent until it signs correctly, and the action settles once', async () => {
    store([{ remote: FIRST }])
    signer.fault = 'other-key'
    signer.faults = 3
    const keeper = await keepers.startReady(environment())
    await keepers.cross(20)
    await until(
      async () => keeper.output.includes('returned a signature that is not of'),
      () => keeper.output,
    )
    await keepers.untilHeld(20, keeper)
    expect(await fixture.transactions()).to.have.length(1)
    expect(await chain().provider.getTransactionCount(FIRST)).to.equal(1)
    expectNoSecret(keeper.output)
  })

  it('when the remote signer stays down for the life of an action, its batch is voided meanwhile, and later batches settle', async () => {
    store([{ remote: FIRST }])
    const keeper = await keepers.startReady(environment())
    signer.isDown = true
    await keepers.cross(20)
    await until(
      async () => (await fixture.actions()).some(({ status }) => status === 'VOIDED'),
      () => keeper.output.slice(-3_000),
      ACTION_LIFETIME + 20_000,
    )
    expect(await fixture.transactions()).to.deep.equal([])
    signer.isDown = false
    await until(
      async () => {
        await keepers.cross(20)
        await fixture.follow()
        return (await fixture.position(keepers.alice)) > 0n
      },
      () => keeper.output.slice(-3_000),
      40_000,
    )
    await fixture.follow()
  })

  it('when a passphrase is wrong at the start, the process ends and names the keystore without the passphrase', async () => {
    store([{ keystore: at('keystore.json') }])
    writeFileSync(at('passphrase'), 'another passphrase')
    const keeper = await keepers.start(environment())
    expect(await keeper.ended()).to.deep.equal([1, null])
    expect(keeper.output).to.include(
      `keystore ${at('keystore.json')} cannot be used: its passphrase does not decrypt it`,
    )
    expect(keeper.output).to.not.include('another passphrase')
    expectNoSecret(keeper.output)
  })
})
