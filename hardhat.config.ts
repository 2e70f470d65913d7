import { fileURLToPath } from 'node:url'
import toolbox from '@nomicfoundation/hardhat-toolbox-mocha-ethers'
import { defineConfig } from 'hardhat/config'

export default defineConfig({
  plugins: [toolbox],
  solidity: {
    version: '0.8.36',
    // The compiler is an npm package, so that a build downloads nothing.
    path: fileURLToPath(import.meta.resolve('solc/soljson.js')),
    settings: {
      viaIR: true,
      optimizer: { enabled: true, runs: 10_000 },
      evmVersion: 'prague',
    },
  },
  networks: {
    default: { type: 'edr-simulated', chainId: 6343, hardfork: 'prague', blockGasLimit: 1_000_000_000 },
  },
  paths: {
    tests: { mocha: './test/contracts', solidity: './test/contracts' },
  },
  typechain: { outDir: fileURLToPath(new URL('typechain-types', import.meta.url)), tsNocheck: true },
  test: {
    mocha: { timeout: 60_000 },
    solidity: { fuzz: { runs: 200 }, invariant: { runs: 20, depth: 50 } },
  },
})
