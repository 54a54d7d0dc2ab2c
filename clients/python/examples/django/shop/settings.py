"""Settings of the example; what is special about it is `VETTANCE`."""

import os

ORIGIN = os.environ.get("SHOP_ORIGIN", "http://127.0.0.1:8000")
RISK = os.environ.get("VETTANCE_URL", "http://127.0.0.1:8080")

VETTANCE = {
    "BASE_URL": RISK,
    "API_KEY": os.environ.get("VETTANCE_KEY", ""),
    "ORIGIN": ORIGIN,
    "WEBHOOK_SECRET": os.environ.get("VETTANCE_WEBHOOK_SECRET"),
    "ON_UNAVAILABLE": os.environ.get("SHOP_ON_UNAVAILABLE", "review"),
    "DEADLINE_MS": float(os.environ.get("SHOP_DEADLINE_MS", "250")),
    "PROXIES": os.environ.get("SHOP_PROXIES", "").split(),
    "CONSENT": "given",  # A shop with a banner leaves "asked".
    "STEP_UP_URL": "/second-factor/",
}

SECRET_KEY = os.environ.get("SHOP_SECRET_KEY", "only for trying it out")
DEBUG = False
ALLOWED_HOSTS = ["127.0.0.1", "localhost"]
INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "vettance_client.django",
    "shop",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "vettance_client.django.middleware.StepUpMiddleware",
    "shop.policy.ContentSecurityPolicy",
]
ROOT_URLCONF = "shop.urls"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
            ]
        },
    }
]
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": os.environ.get("SHOP_DATABASE", "shop.sqlite3"),
    }
}
LOGIN_URL = "/login/"
LOGIN_REDIRECT_URL = "/"
EMAIL_BACKEND = "django.core.mail.backends.console.EmailBackend"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
