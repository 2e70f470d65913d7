// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {Ending} from "../../../contracts/types/TraderState.sol";
import {MarketKind} from "../../../contracts/types/Market.sol";
import {EndingHandler} from "./EndingHandler.sol";
import {Listing} from "./ExchangeFixture.sol";
import {deploy, same} from "./Vm.sol";

/// @title Laws of the close, the final report and the end of a market, against a model that predicts every call
abstract contract EndingInvariants {
    EndingHandler internal handler;

    function _listing() internal pure virtual returns (Listing memory);

    function setUp() public {
        handler = EndingHandler(deploy("EndingHandler", abi.encode(_listing())));
    }

    function targetContracts() public view returns (address[] memory targets) {
        targets = new address[](1);
        targets[0] = address(handler);
    }

    struct FuzzSelector {
        address addr;
        bytes4[] selectors;
    }

    function targetSelectors() public view returns (FuzzSelector[] memory targets) {
        bytes4[] memory steps = new bytes4[](14);
        steps[0] = handler.batch.selector;
        steps[1] = handler.heartbeat.selector;
        steps[2] = handler.extendExpiry.selector;
        steps[3] = handler.extendDisputeWindow.selector;
        steps[4] = handler.schedule.selector;
        steps[5] = handler.requestFreeze.selector;
        steps[6] = handler.freeze.selector;
        steps[7] = handler.finalize.selector;
        steps[8] = handler.report.selector;
        steps[9] = handler.report.selector;
        for (uint256 i = 10; i < steps.length; ++i) steps[i] = handler.pass.selector;
        targets = new FuzzSelector[](1);
        targets[0] = FuzzSelector(address(handler), steps);
    }

    /// @notice The market's ending is that of the model.
    function invariant_ending() public view {
        EndingHandler.Model memory model = handler.model();
        Ending memory ending = handler.trader().ending();
        same("expiry", int256(model.expiresAt), int48(ending.expiresAt));
        same("settling", int256(model.settlingAt), int48(ending.settlingAt));
        same("dispute window", int256(model.window), int48(ending.disputeWindow));
        same("first report", int256(model.reportedAt), int48(ending.reportedAt));
        same("observation", int256(model.observedAt), int48(ending.observedAt));
        same("final price", int256(model.price), int96(ending.price));
        same("ended", model.ended, handler.trader().windDown().endedAt != 0);
    }

    function afterInvariant() public {
        handler.endWithoutOperator(handler.batches() % 2 == 0);
    }
}

contract PerpetualEnding is EndingInvariants {
    function _listing() internal pure override returns (Listing memory) {
        return Listing(MarketKind.Perpetual, 1e17, 1e15, 20, 45_000, 22_500, 100, 500, 40_000, 500_000, true);
    }
}

contract FutureEnding is EndingInvariants {
    function _listing() internal pure override returns (Listing memory) {
        return Listing(MarketKind.Future, 5e17, 1e16, 5, 180_000, 90_000, 100, 2_000, 0, 20_000, true);
    }
}

contract BinaryEnding is EndingInvariants {
    function _listing() internal pure override returns (Listing memory) {
        return Listing(MarketKind.BinaryFuture, 1e15, 1e18, 5, 180_000, 90_000, 1_000, 20_000, 0, 500, true);
    }
}
