// Exit code 0 when this Node.js runs TypeScript by itself. CommonJS and old syntax: any Node.js can read it.
const [major, minor] = process.versions.node.split('.').map(Number)
process.exit(major > 22 || (major === 22 && minor >= 18) ? 0 : 1)
