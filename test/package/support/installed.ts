/** The built package, and its tarball installed in an empty folder. */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buildPackage } from '../../../package/build.ts'

export interface InstalledPackage {
  /** The folder of the built package. */
  readonly source: string
  /** The tarball. */
  readonly tarball: string
  /** The folder whose node_modules has it. */
  readonly folder: string
}

const NPM = ['--no-audit', '--no-fund', '--prefer-offline', '--loglevel=error']

export async function packAndInstall(): Promise<InstalledPackage> {
  const root = mkdtempSync(join(tmpdir(), 'clearbatch-package-'))
  const source = join(root, 'source')
  await buildPackage(source)
  const packed = execFileSync('npm', ['pack', '--json', '--pack-destination', root], {
    cwd: source,
    encoding: 'utf8',
  })
  const [{ filename }] = JSON.parse(packed) as [{ filename: string }]
  const folder = mkdtempSync(join(root, 'install-'))
  writeFileSync(join(folder, 'package.json'), '{"private":true,"type":"module"}\n')
  const tarball = join(root, filename)
  execFileSync('npm', ['install', ...NPM, tarball], { cwd: folder, stdio: ['ignore', 'ignore', 'inherit'] })
  return { source, tarball, folder }
}
