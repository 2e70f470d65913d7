/** The npm package: what it contains, how large it is, and that its tarball works in an empty folder. */
import { execFileSync, spawnSync } from 'node:child_process'
import { readFileSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { expect } from 'chai'
import { build } from 'esbuild'
import { after, before, describe, it } from 'mocha'
import { publint } from 'publint'
import { type InstalledPackage, packAndInstall } from './support/installed.ts'

const KB = 1024

describe('the npm package', function () {
  this.timeout(240_000)
  let installed: InstalledPackage
  before(async () => {
    installed = await packAndInstall()
  })
  after(() => rmSync(dirname(installed.source), { recursive: true }))

  /** Gzipped bytes of a browser bundle of a program with this import. */
  async function bundled(program: string): Promise<number> {
    const { outputFiles } = await build({
      stdin: { contents: program, resolveDir: installed.folder },
      bundle: true,
      minify: true,
      write: false,
      format: 'esm',
      platform: 'browser',
      target: 'es2022',
    })
    return gzipSync(outputFiles[0]?.contents ?? '', { level: 9 }).length
  }

  it('when the core is bundled for browsers, it has at most 25 KB with the signer of private keys, and at most 40 KB with the verifier', async () => {
    const core = await bundled(
      "import { Client } from 'clearbatch'; import { privateKeySigner } from 'clearbatch/signing'; globalThis.all = [Client, privateKeySigner]",
    )
    const both = await bundled(
      "import { Client } from 'clearbatch'; import { verifyBatch } from 'clearbatch/proof'; globalThis.all = [Client, verifyBatch]",
    )
    expect(core, `${core} bytes`).to.be.at.most(25 * KB)
    expect(both, `${both} bytes`).to.be.at.most(40 * KB)
  })

  it('when publint and arethetypeswrong check it, they find nothing', async () => {
    const { messages } = await publint({ pkgDir: installed.source, pack: 'npm', strict: true })
    expect(messages).to.deep.equal([])
    const attw = spawnSync('attw', [installed.tarball, '--profile', 'esm-only', '--format', 'ascii'], {
      encoding: 'utf8',
    })
    expect(attw.status, attw.stdout + attw.stderr).to.equal(0)
  })

  it('when it is published as a dry run, npm has nothing to say', () => {
    const { status, stderr } = spawnSync('npm', ['publish', '--dry-run', '--loglevel=warn'], {
      cwd: installed.source,
      encoding: 'utf8',
    })
    // Of the machine, not of the package.
    const warnings = stderr
      .split('\n')
      .filter((line) => line !== '' && !line.includes('requires you to be logged in'))
    expect([status, warnings]).to.deep.equal([0, []])
  })

  it('when it is imported from the folder, every entry loads, without ethers and without the repository', () => {
    const program = `
      import { Client, privateKeySigner, roundPrice } from 'clearbatch'
      import { LiveFeed } from 'clearbatch/live'
      import { verifyBatch } from 'clearbatch/proof'
      import { nativeSigner, toSigner } from 'clearbatch/signing'
      import 'clearbatch/types'
      const signer = await nativeSigner('0x' + '11'.repeat(32))
      const { problems } = await verifyBatch({ proof: {} })
      console.log([typeof Client, typeof LiveFeed, typeof toSigner, typeof roundPrice, signer.address, problems.length].join())`
    const out = execFileSync(process.execPath, ['--input-type=module', '-e', program], {
      cwd: installed.folder,
      encoding: 'utf8',
    })
    expect(out).to.equal('function,function,function,function,0x19E7E376E7C213B7E7e7e46cc70A5dD086DAff2A,1\n')
    const files = execFileSync('tar', ['-tzf', installed.tarball], { encoding: 'utf8' }).trim().split('\n')
    for (const name of [
      'LICENSE',
      'README.md',
      'CHANGELOG.md',
      'dist/package/entries/index.d.ts',
      'dist/cli/main.js',
    ])
      expect(files).to.include(`package/${name}`)
    expect(
      files.filter((file) => /dist\/(api|db|keeper|stack|ops|cli\/repository)\//.test(file)),
    ).to.deep.equal([])
  })

  it('when a program with wrong types is compiled against it, the compiler refuses it, and accepts the right one', () => {
    const check = (line: string): number | null => {
      const program = `import { Client } from 'clearbatch'\nimport type { PlacedOrder, RestPaths } from 'clearbatch/types'\nconst client = new Client({ baseUrl: '' })\n${line}\nexport type { PlacedOrder, RestPaths }\n`
      const options = [
        '--module',
        'nodenext',
        '--strict',
        '--noEmit',
        '--skipLibCheck',
        'false',
        '--lib',
        'es2022,dom',
      ]
      execFileSync('node', ['-e', 'require("fs").writeFileSync("program.ts", process.argv[1])', program], {
        cwd: installed.folder,
      })
      return spawnSync('tsc', [...options, 'program.ts'], { cwd: installed.folder }).status
    }
    expect(
      check("export const order = client.orders.place({ marketId: 1, side: 'LONG', quantity: 1 })"),
    ).to.equal(0)
    expect(
      check("export const order = client.orders.place({ marketId: 1, side: 'BUY', quantity: 1 })"),
    ).to.not.equal(0)
  })

  it('when its command is asked for help, it takes at most 110 ms of the processor beyond the 40 ms of Node.js itself', () => {
    const meter =
      "data:text/javascript,process.on('exit',()=>process.stderr.write(JSON.stringify(process.cpuUsage())))"
    const command = join(installed.folder, 'node_modules/.bin/clearbatch')
    const timeOf = (...args: string[]): number => {
      const { stderr, status } = spawnSync(process.execPath, ['--import', meter, ...args], {
        encoding: 'utf8',
      })
      expect(status).to.equal(0)
      const { user, system } = JSON.parse(stderr) as { user: number; system: number }
      return (user + system) / 1000
    }
    // The least of several: the machine runs other work too.
    const least = (...args: string[]) => Math.min(...Array.from({ length: 7 }, () => timeOf(...args)))
    const [empty, help] = [least('-e', '0'), least(command, '--help')]
    expect(help - empty, `${help} ms, of which an empty program ${empty} ms`).to.be.at.most(110)
  })

  it('when a command of the repository is run, it ends with one line and exit code 2', () => {
    for (const name of ['start', 'ops', 'db', 'replay', 'simulate', 'cluster']) {
      const { status, stderr } = spawnSync(join(installed.folder, 'node_modules/.bin/clearbatch'), [name], {
        encoding: 'utf8',
      })
      expect([name, status, /^[^\n]+\n$/.test(stderr)]).to.deep.equal([name, 2, true])
    }
  })

  it('when the version changes, the changelog has a section for it', () => {
    const { version } = JSON.parse(readFileSync(join(installed.source, 'package.json'), 'utf8')) as {
      version: string
    }
    expect(readFileSync('package/CHANGELOG.md', 'utf8')).to.include(`## ${version}`)
  })
})
