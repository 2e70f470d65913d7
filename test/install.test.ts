/** A fresh clone installs with `npm ci` under the host's Node.js and under the one that the packages bring, on every platform. */
import { spawnSync } from 'node:child_process'
import { copyFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { expect } from 'chai'
import { missingIn } from '../scripts/complete-lock.ts'

/** Folders of PATH without those of this checkout, so that `node` is the host's. */
const HOST = (process.env.PATH ?? '').split(delimiter).filter((path) => !path.includes('node_modules'))

const RUNTIMES = [
  { name: "the host's Node.js", path: HOST },
  { name: `Node.js ${process.versions.node}`, path: [dirname(process.execPath), ...HOST] },
]

describe('package-lock.json', function () {
  this.timeout(300_000)

  it('names the packages of all platforms (if not: npm run lock)', () => {
    const missing = missingIn(JSON.parse(readFileSync('package-lock.json', 'utf8')))
    expect(missing.map(([, name]) => name)).to.deep.equal([])
  })

  it('when a nested package lacks an optional dependency, it is reported, and one of an outer folder counts', () => {
    const packages = {
      '': {},
      'node_modules/a': { optionalDependencies: { linux: '1', windows: '1' } },
      'node_modules/linux': {},
      'node_modules/a/node_modules/b': { optionalDependencies: { linux: '1', darwin: '1' } },
    }
    expect(missingIn({ packages })).to.deep.equal([
      ['node_modules/a', 'windows'],
      ['node_modules/a/node_modules/b', 'darwin'],
    ])
  })

  for (const { name, path } of RUNTIMES)
    it(`when installed from a copy with npm ci under ${name}, npm accepts it`, () => {
      const folder = mkdtempSync(join(tmpdir(), 'clearbatch-install-'))
      for (const file of ['package.json', 'package-lock.json', '.npmrc'])
        copyFileSync(file, join(folder, file))
      // npm validates the complete file before the first download.
      const { status, stderr } = spawnSync('npm', ['ci', '--dry-run', '--ignore-scripts', '--offline'], {
        cwd: folder,
        env: { HOME: process.env.HOME, PATH: path.join(delimiter) },
        encoding: 'utf8',
      })
      rmSync(folder, { recursive: true })
      expect(status, stderr).to.equal(0)
    })
})
