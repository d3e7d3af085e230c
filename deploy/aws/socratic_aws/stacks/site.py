"""The dashboard: files in a private bucket behind CloudFront, and the API below the same name.

Pages and API have one origin, so that a page needs no address of the API, and no other site's page
reads or writes.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from aws_cdk import CfnOutput, Duration, RemovalPolicy, aws_s3
from aws_cdk import Stack as CdkStack
from aws_cdk import aws_cloudfront as cloudfront
from aws_cdk import aws_cloudfront_origins as origins
from constructs import Construct

from socratic_aws.stacks.service_stack import ServiceStack, stage_domain
from socratic_aws.stacks.stage import Stage, accept

OF_THE_API: Final = ("api/*", "runs/*", "weekly", "openapi.json", "healthz", "readyz")
"""The paths that the API answers; all others are files."""

SAME_ORIGIN: Final = Path(__file__).with_name("same_origin.js")


class Site(CdkStack):
    """The dashboard of a stage."""

    def __init__(self, scope: Construct, stage: Stage, api: ServiceStack) -> None:
        super().__init__(
            scope, "Site", stack_name=stage.named("site"), description="Socratic Bench: dashboard"
        )
        if api.api is None:
            raise ValueError("the site needs the stack of the API")
        bucket = aws_s3.Bucket(
            self,
            "Files",
            bucket_name=f"{stage.named('site')}-{self.account}-{self.region}",
            encryption=aws_s3.BucketEncryption.S3_MANAGED,
            block_public_access=aws_s3.BlockPublicAccess.BLOCK_ALL,
            object_ownership=aws_s3.ObjectOwnership.BUCKET_OWNER_ENFORCED,
            enforce_ssl=True,
            versioned=True,
            removal_policy=RemovalPolicy.RETAIN,
        )
        bucket.add_lifecycle_rule(noncurrent_version_expiration=Duration.days(90))
        same_origin = cloudfront.Function(
            self,
            "SameOrigin",
            function_name=stage.named("same-origin"),
            code=cloudfront.FunctionCode.from_file(file_path=str(SAME_ORIGIN)),
            runtime=cloudfront.FunctionRuntime.JS_2_0,
        )
        to_api = cloudfront.BehaviorOptions(
            origin=origins.HttpOrigin(stage_domain(api.api)),
            allowed_methods=cloudfront.AllowedMethods.ALLOW_ALL,
            cache_policy=cloudfront.CachePolicy.CACHING_DISABLED,
            origin_request_policy=cloudfront.OriginRequestPolicy.ALL_VIEWER_EXCEPT_HOST_HEADER,
            viewer_protocol_policy=cloudfront.ViewerProtocolPolicy.HTTPS_ONLY,
            function_associations=[
                cloudfront.FunctionAssociation(
                    function=same_origin, event_type=cloudfront.FunctionEventType.VIEWER_REQUEST
                )
            ],
        )
        distribution = cloudfront.Distribution(
            self,
            "Distribution",
            comment=stage.named("site"),
            default_root_object="index.html",
            default_behavior=cloudfront.BehaviorOptions(
                origin=origins.S3BucketOrigin.with_origin_access_control(bucket),
                viewer_protocol_policy=cloudfront.ViewerProtocolPolicy.REDIRECT_TO_HTTPS,
                response_headers_policy=self._headers(stage),
            ),
            additional_behaviors=dict.fromkeys(OF_THE_API, to_api),
            minimum_protocol_version=cloudfront.SecurityPolicyProtocol.TLS_V1_2_2021,
            price_class=cloudfront.PriceClass.PRICE_CLASS_100,
        )
        accept(bucket, "S1", "Only CloudFront reads the bucket, and only what everybody may read.")
        accept(distribution, "CFR1", "A leaderboard may be read everywhere.")
        accept(
            distribution,
            "CFR2",
            "A firewall costs more than the rest of a stage; the HTTP API throttles.",
        )
        accept(distribution, "CFR3", "The API logs its requests; the pages are the same for all.")
        accept(
            distribution,
            "CFR4",
            "CloudFront's own certificate allows no other choice; a domain of one's own does.",
        )
        CfnOutput(self, "Address", value=f"https://{distribution.distribution_domain_name}/")
        CfnOutput(self, "Bucket", value=bucket.bucket_name)
        CfnOutput(self, "DistributionId", value=distribution.distribution_id)

    def _headers(self, stage: Stage) -> cloudfront.ResponseHeadersPolicy:
        return cloudfront.ResponseHeadersPolicy(
            self,
            "Headers",
            response_headers_policy_name=stage.named("headers"),
            security_headers_behavior=cloudfront.ResponseSecurityHeadersBehavior(
                content_security_policy=cloudfront.ResponseHeadersContentSecurityPolicy(
                    content_security_policy=(
                        "default-src 'none'; script-src 'self'; style-src 'self'; "
                        "img-src 'self' data:; connect-src 'self'; base-uri 'none'; "
                        "form-action 'none'; frame-ancestors 'none'"
                    ),
                    override=True,
                ),
                content_type_options=cloudfront.ResponseHeadersContentTypeOptions(override=True),
                frame_options=cloudfront.ResponseHeadersFrameOptions(
                    frame_option=cloudfront.HeadersFrameOption.DENY, override=True
                ),
                referrer_policy=cloudfront.ResponseHeadersReferrerPolicy(
                    referrer_policy=cloudfront.HeadersReferrerPolicy.NO_REFERRER, override=True
                ),
                strict_transport_security=cloudfront.ResponseHeadersStrictTransportSecurity(
                    access_control_max_age=Duration.days(365),
                    include_subdomains=False,
                    override=True,
                ),
            ),
        )
