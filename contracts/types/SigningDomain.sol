// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

// Name and version in the EIP-712 domain of every market.
string constant DOMAIN_NAME = "IsolatedTrader";
string constant DOMAIN_VERSION = "2.0";
