/** Damage to the files of the data folder: a start repairs it, or refuses it in one line that names the path. */
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { after, describe, it } from 'mocha'
import { repairChainState } from '../../stack/chain-state.ts'
import { startChild } from '../../stack/child.ts'
import { dataDirAt, readJson } from '../../stack/data-dir.ts'
import { loadIssuerKeys } from '../../stack/issuer/keys.ts'
import { loadKeys } from '../../stack/keys.ts'
import { endLeftOver } from '../../stack/left-over-postmaster.ts'
import { startPostgres } from '../../stack/postgres.ts'
import { createSupervisor } from '../../stack/supervisor.ts'

const parent = mkdtempSync(join(tmpdir(), 'clearbatch-damage-'))
after(() => rmSync(parent, { recursive: true }))
const temporary = () => dataDirAt(mkdtempSync(join(parent, 'data-')))

async function expectRefusal(path: string, attempt: () => unknown): Promise<void> {
  const refusal = await (async () => attempt())().then(
    () => null,
    (error: Error) => error,
  )
  expect(refusal?.name, refusal?.stack).to.equal('StackError')
  expect(refusal?.message).to.include(path).and.not.include('\n')
}

const dir = temporary()
const data = join(dir.postgres, 'data')
const pidFile = join(data, 'postmaster.pid')
const output = join(dir.logs, 'child.log')
const ready = async () => true
const READERS: readonly (readonly [path: string, read: () => unknown])[] = [
  [dir.keys, () => loadKeys(dir)],
  [dir.deployment, () => readJson(dir.deployment)],
  [dir.accounts, () => readJson(dir.accounts)],
  [dir.stackFile, () => readJson(dir.stackFile)],
  [dir.admin, () => readJson(dir.admin)],
  [dir.issuer, () => loadIssuerKeys(dir.issuer)],
  [dir.chainState, () => repairChainState(dir.chainState)],
  [pidFile, () => endLeftOver(data)],
]
/** The folder in its place is the cluster, which is empty: it is created. */
const LINKED: typeof READERS = [...READERS, [data, () => startPostgres({ dir: dir.postgres })]]
const OUTPUTS: typeof READERS = [
  [output, () => startChild({ command: 'true', args: [], logFile: output, ready })],
  [
    join(dir.logs, 'echo.log'),
    () =>
      createSupervisor({ logDir: dir.logs, report: () => {} }).start({
        name: 'echo',
        args: [],
        env: {},
        readyUrl: null,
      }),
  ],
]

describe('damaged files of the data folder', () => {
  for (const path of [data, dir.logs]) mkdirSync(path, { recursive: true })

  for (const [path, read] of LINKED) {
    it(`when ${path.slice(dir.path.length + 1)} is a link to nothing, it is refused, and nothing replaces the link`, async () => {
      rmSync(path, { recursive: true, force: true })
      symlinkSync(join(parent, 'not-mounted'), path)
      await expectRefusal(path, read)
      expect(readlinkSync(path)).to.equal(join(parent, 'not-mounted'))
      expect(readdirSync(parent)).not.to.include('not-mounted')
      rmSync(path)
      if (path === data) mkdirSync(data)
    })
  }

  for (const [path, read] of [...READERS, ...OUTPUTS]) {
    it(`when ${path.slice(dir.path.length + 1)} is a folder, it is refused`, async () => {
      mkdirSync(path)
      await expectRefusal(path, read)
      rmSync(path, { recursive: true })
    })
  }

  it('when the keys are lost and the contracts that they own are not, no new keys are generated', async () => {
    const lost = temporary()
    loadKeys(lost)
    rmSync(lost.keys)
    writeFileSync(lost.deployment, '{}')
    await expectRefusal(lost.keys, () => loadKeys(lost))
    expect(readdirSync(lost.path)).to.deep.equal(['deployment.json'])
  })
})
