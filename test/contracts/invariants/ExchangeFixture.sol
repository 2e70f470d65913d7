// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {TestUSDM} from "../../../contracts/TestUSDM.sol";
import {IAccountManager} from "../../../contracts/interfaces/IAccountManager.sol";
import {IMarginBank} from "../../../contracts/interfaces/IMarginBank.sol";
import {ISignedPriceOracle} from "../../../contracts/interfaces/ISignedPriceOracle.sol";
import {IBackstop} from "../../../contracts/interfaces/IBackstop.sol";
import {IIsolatedTrader} from "../../../contracts/interfaces/IIsolatedTrader.sol";
import {MarketGrid, MarketKind, MarketMode, Parameters} from "../../../contracts/types/Market.sol";
import {Order} from "../../../contracts/types/Order.sol";
import {Clock} from "../../../contracts/types/TraderState.sol";
import {clockOf} from "./MarketStorage.sol";
import {deploy, sign, vm} from "./Vm.sol";

/// @notice Parameters of the market of a run.
struct Listing {
    MarketKind kind;
    uint256 tick;
    uint256 step;
    uint8 maxLeverage;
    uint24 imr;
    uint24 mmr;
    uint24 makerFee;
    uint24 takerFee;
    uint16 fundingCap;
    /// Oracle price at the start, in ticks.
    uint256 start;
    /// Whether the oracle price stays constant.
    bool steady;
}

/// @notice One order of a part. Prices in ticks, quantities in steps.
struct Leg {
    uint256 actor;
    bool buy;
    bool reduceOnly;
    uint256 fill;
    uint256 taker;
    uint256 quantity;
    uint256 limit;
    uint256 leverage;
    uint256 salt;
    uint256 slot;
    /// A liquidation, which has no signer.
    bool forced;
}

/// @title A deployed exchange with actors that sign with their own keys
contract ExchangeFixture {
    uint256 internal constant ACTORS = 5;
    /// @dev Accounts that can hold a position: the actors and the backstop.
    uint256 internal constant HOLDERS = ACTORS + 1;
    uint256 internal constant ORACLE_KEY = 0x0AC1E;
    uint16 private constant VERSION = 3;
    uint256 internal constant NO_SLOT = 1023;
    uint256 internal constant START_BALANCE = 2e23;
    address internal constant FORWARDER = address(1);
    bytes32 internal constant FEED = bytes32(uint256(1));
    bytes32 internal constant FINAL_FEED = bytes32(uint256(2));
    bytes32 private constant ORDER_TYPEHASH = keccak256(
        "Order(bytes8 flags,uint128 quantity,uint128 price,uint128 triggerPrice,uint8 triggerCondition,"
        "uint128 leverage,address maker,uint128 expiration)"
    );
    bytes32 private constant REPORT_TYPEHASH = keccak256("PriceReport(bytes32 feedId,uint256 price,uint256 observedAt)");
    bytes32 private constant DOMAIN_TYPEHASH =
        keccak256("EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)");
    /// @dev Within a second, so that block time reaches it late.
    uint256 internal constant EXPIRES_AT = 2_000_000_000_500;

    TestUSDM public immutable token;
    IMarginBank public immutable bank;
    IAccountManager public immutable keys;
    ISignedPriceOracle public immutable oracle;
    IIsolatedTrader public immutable trader;
    /// @notice Inherits positions below maintenance.
    IBackstop public immutable backstop;
    bytes32 private immutable _orderDomain;
    bytes32 private immutable _reportDomain;

    Listing public listing;
    /// @dev Stored, because deriving an address from its key costs more time than most steps.
    address[ACTORS] private _actors;

    constructor(Listing memory listed) {
        vm.warp(1_900_000_000);
        for (uint256 i; i < ACTORS; ++i) _actors[i] = vm.addr(keyOf(i));
        listing = listed;
        token = TestUSDM(deploy("TestUSDM", ""));
        // Its admin may call every function that is not assigned to another role.
        address access = deploy("ExchangeAccess", abi.encode(address(this), 0));
        keys = IAccountManager(deploy("AccountManager", abi.encode(FORWARDER)));
        oracle = ISignedPriceOracle(deploy("SignedPriceOracle", abi.encode(access, 0)));
        vm.deal(address(this), 1);
        bank = IMarginBank(deploy("MarginBank", abi.encode(token, access, address(this), 0), 1));
        bytes memory arguments = abi.encode(
            _grid(listed), _parameters(listed), bank, keys, oracle, FORWARDER, access, deploy("MarketExtension", "")
        );
        trader = IIsolatedTrader(deploy("IsolatedTrader", arguments));
        _orderDomain = _domain("IsolatedTrader", "2.0", address(trader));
        _reportDomain = _domain("SignedPriceOracle", "1", address(oracle));
        address[] memory signers = new address[](1);
        signers[0] = vm.addr(ORACLE_KEY);
        oracle.setFeed(FEED, signers, 1);
        oracle.setFeed(FINAL_FEED, signers, 1);
        trader.proposeOperator(address(this));
        trader.acceptOperator();
        bank.announceMarket(address(trader));
        bank.listMarket(address(trader));
        backstop = IBackstop(deploy("Backstop", abi.encode(access, bank, keys)));
        backstop.setBacked(address(trader), true);
        trader.setBackstop(address(backstop), uint96(START_BALANCE / 20));
        token.mint(address(this), HOLDERS * START_BALANCE);
        token.approve(address(bank), type(uint256).max);
        for (uint256 i; i < HOLDERS; ++i) bank.depositFor(holder(i), START_BALANCE);
    }

    function _grid(Listing memory listed) private pure returns (MarketGrid memory grid) {
        grid.marketId = 1;
        grid.kind = listed.kind;
        grid.tick = listed.tick;
        grid.step = listed.step;
        grid.feedId = FEED;
        grid.disputeWindow = 1 days * 1000;
        if (listed.kind == MarketKind.Perpetual) return grid;
        grid.finalFeedId = FINAL_FEED;
        grid.finalHigh = listed.kind == MarketKind.Future ? 1e24 : 1e18;
        grid.expiresAt = uint48(EXPIRES_AT);
    }

    function _parameters(Listing memory listed) private pure returns (Parameters memory p) {
        p.imr = listed.imr;
        p.mmr = listed.mmr;
        p.mtbLong = 50_000;
        p.mtbShort = 50_000;
        p.makerFee = listed.makerFee;
        p.takerFee = listed.takerFee;
        p.reportMaxAge = 10_000;
        p.moveBase = 100_000;
        p.moveSlope = 20_000;
        p.moveWindow = 1_000;
        p.fundingCap = listed.fundingCap;
        p.maxLeverage = listed.maxLeverage;
        p.mode = MarketMode.Open;
    }

    function _domain(bytes memory name, bytes memory version, address verifier) private view returns (bytes32) {
        return keccak256(abi.encode(DOMAIN_TYPEHASH, keccak256(name), keccak256(version), block.chainid, verifier));
    }

    // ------------------------------------------------------------------ actors

    function keyOf(uint256 index) internal pure returns (uint256) {
        return 0xA11CE + index;
    }

    function actor(uint256 index) public view returns (address) {
        return _actors[index];
    }

    function holder(uint256 index) public view returns (address) {
        return index == ACTORS ? address(backstop) : actor(index);
    }

    // ------------------------------------------------------------------ parts

    /// @notice Fields of a part's header that do not follow from the clock.
    struct Head {
        uint256 actionId;
        uint256 batchId;
        uint256 asOf;
        uint256 part;
        uint256 parts;
        uint256 price;
        uint256 oraclePrice;
    }

    /// @notice The next action of the market at the current time.
    function _nextHead() internal view returns (Head memory head) {
        Clock memory clock = clockOf(address(trader));
        uint256 blockTime = block.timestamp * 1000;
        head.actionId = uint256(clock.actionId) + 1;
        head.batchId = uint256(clock.batchId) + 1;
        head.asOf = clock.asOf > blockTime ? clock.asOf : blockTime;
        head.part = 1;
        head.parts = 1;
    }

    function _encode(Head memory head, Leg[] memory legs) internal view returns (bytes memory part) {
        bytes memory proof = _report(head.oraclePrice, head.asOf);
        uint256 rates = (uint256(listing.makerFee) << 24) | listing.takerFee;
        part = abi.encodePacked(
            uint48(head.actionId),
            uint48(head.batchId),
            uint48(head.asOf),
            uint8(head.part),
            uint8(head.parts),
            uint16(legs.length),
            uint16(proof.length),
            uint48(rates),
            VERSION
        );
        part = abi.encodePacked(
            part, uint40(head.price), uint96(head.oraclePrice), uint48(head.asOf), uint72(0)
        );
        for (uint256 i; i < legs.length; ++i) part = abi.encodePacked(part, _record(legs[i]));
        return abi.encodePacked(part, proof);
    }

    function _record(Leg memory leg) private view returns (bytes memory) {
        if (leg.forced) return _forcedRecord(leg);
        Order memory order = _orderOf(leg);
        bytes32 digest = _typed(_orderDomain, keccak256(abi.encode(ORDER_TYPEHASH, order)));
        (uint8 v, bytes32 r, bytes32 s) = sign(keyOf(leg.actor), _personal(digest));
        uint256 terms = (leg.leverage << 57) | uint64(order.flags);
        // Quantity and taker steps follow the signature.
        uint256 meta = (leg.slot << 6) | 0x22 | (uint256(v - 27) << 3);
        bytes memory fixedFields =
            abi.encodePacked(order.maker, uint48(leg.fill), uint64(terms), uint40(leg.limit), uint40(0), uint16(meta));
        return abi.encodePacked(fixedFields, r, s, uint48(leg.quantity), uint48(leg.taker));
    }

    function _forcedRecord(Leg memory leg) private view returns (bytes memory) {
        uint256 flags = (leg.salt << 4) | 2 | (leg.buy ? 1 : 0);
        uint256 meta = (NO_SLOT << 6) | 0x24;
        return abi.encodePacked(
            actor(leg.actor), uint48(leg.fill), uint64(flags), uint80(0), uint16(meta), uint48(leg.taker)
        );
    }

    function _orderOf(Leg memory leg) internal view returns (Order memory order) {
        uint256 flags = (leg.salt << 4) | (leg.reduceOnly ? 2 : 0) | (leg.buy ? 1 : 0);
        order.flags = bytes8(uint64(flags));
        order.quantity = uint128(leg.quantity * listing.step);
        order.price = uint128(leg.limit * listing.tick);
        order.leverage = uint128(leg.leverage * 1e18);
        order.maker = actor(leg.actor);
    }

    /// @dev Digest of typed data (EIP-712), computed here because a call to the contract takes longer.
    function _typed(bytes32 domain, bytes32 structHash) private pure returns (bytes32) {
        return keccak256(abi.encodePacked(hex"1901", domain, structHash));
    }

    function _personal(bytes32 digest) internal pure returns (bytes32) {
        return keccak256(abi.encodePacked("\x19Ethereum Signed Message:\n32", digest));
    }

    function _report(uint256 price, uint256 observedAt) internal view returns (bytes memory) {
        return _reportOn(FEED, price, observedAt);
    }

    function _reportOn(bytes32 feedId, uint256 price, uint256 observedAt) internal view returns (bytes memory) {
        bytes32 digest = _typed(_reportDomain, keccak256(abi.encode(REPORT_TYPEHASH, feedId, price, observedAt)));
        (uint8 v, bytes32 r, bytes32 s) = sign(ORACLE_KEY, digest);
        return abi.encodePacked(r, s, v);
    }
}
